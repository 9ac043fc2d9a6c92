#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::um {

/// An amount of memory.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_{count} {}

  [[nodiscard]] constexpr std::uint64_t count() const { return count_; }

  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  /// Requires: `other` is not larger than this.
  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }

  friend constexpr bool operator==(Bytes, Bytes) = default;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(std::uint64_t n, Bytes b) { return Bytes{n * b.count_}; }
  /// Returns how many whole `b` fit in `a`.
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }

 private:
  std::uint64_t count_ = 0;
};

/// The smallest multiple of `unit` that is not smaller than `size`.
[[nodiscard]] constexpr Bytes round_up(Bytes size, Bytes unit) {
  return Bytes{(size.count() + unit.count() - 1) / unit.count() * unit.count()};
}

/// The largest multiple of `unit` that is not larger than `size`.
[[nodiscard]] constexpr Bytes round_down(Bytes size, Bytes unit) {
  return Bytes{size.count() / unit.count() * unit.count()};
}

/// Returns `a - b`, or zero when `b` is larger.
[[nodiscard]] constexpr Bytes saturating_difference(Bytes a, Bytes b) {
  return a > b ? a - b : Bytes{};
}

/// Returns the count as a signed number, so that differences may be negative.
[[nodiscard]] constexpr std::int64_t signed_count(Bytes size) {
  return static_cast<std::int64_t>(size.count());
}
/// Returns bytes.
[[nodiscard]] constexpr double to_double(Bytes size) { return static_cast<double>(size.count()); }

/// Formats `size` for people: "512 B", "1.50 MiB", "24.0 GiB".
[[nodiscard]] std::string to_string(Bytes size);

/// Reads a number with an optional byte unit, "1.5 GiB" or "40GB", as bytes. Returns nullopt when
/// `text` is not a finite, non-negative amount.
[[nodiscard]] std::optional<double> parse_amount(std::string_view text);

/// Reads what people type: "4096", "512MiB", "1.5 GiB", "40GB" (units of 1000). Refuses "64k".
/// Returns nullopt when `text` is not an amount, is negative or does not fit in 64 bits.
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);

inline namespace literals {
consteval Bytes operator""_B(unsigned long long n) { return Bytes{n}; }
consteval Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10U}; }
consteval Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20U}; }
consteval Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30U}; }
}  // namespace literals

/// A duration.
using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

/// Returns nanoseconds.
[[nodiscard]] constexpr double to_double(Nanoseconds time) {
  return static_cast<double>(time.count());
}
[[nodiscard]] constexpr double seconds(Nanoseconds time) { return to_double(time) * 1e-9; }

/// A transfer rate. Only `Bytes / Bandwidth` yields a time.
class Bandwidth {
 public:
  /// Requires: `bytes_per_second` is positive.
  constexpr explicit Bandwidth(double bytes_per_second) : bytes_per_second_{bytes_per_second} {}

  [[nodiscard]] constexpr double bytes_per_second() const { return bytes_per_second_; }

  /// Returns the time to move `size` at this rate, rounded up. Returns at most 2^53 ns (104 days),
  /// so that the times of many moves can be added.
  friend constexpr Nanoseconds operator/(Bytes size, Bandwidth rate) {
    const double ns = static_cast<double>(size.count()) * 1e9 / rate.bytes_per_second_;
    constexpr std::int64_t kMost = std::int64_t{1} << 53U;
    if (ns >= static_cast<double>(kMost)) return Nanoseconds{kMost};
    const auto whole = static_cast<std::int64_t>(ns);
    return Nanoseconds{whole + (static_cast<double>(whole) < ns ? 1 : 0)};
  }

  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  double bytes_per_second_;
};

/// Reads "2GB/s", "500MB/s", "1.5 GiB/s". Returns nullopt unless `text` is a rate of at least 1
/// kB/s.
[[nodiscard]] std::optional<Bandwidth> parse_bandwidth(std::string_view text);

/// The bytes of one allocation.
using Range = std::span<std::byte>;

}  // namespace spillway::um
