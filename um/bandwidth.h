#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "um/bytes.h"
#include "um/nanoseconds.h"

namespace spillway::um {

/// A transfer rate. Only `Bytes / Bandwidth` yields a time.
class Bandwidth {
 public:
  /// Requires: `bytes_per_second` is positive.
  constexpr explicit Bandwidth(double bytes_per_second) : bytes_per_second_{bytes_per_second} {}

  [[nodiscard]] constexpr double bytes_per_second() const { return bytes_per_second_; }

  /// Time to move `size` at this rate, rounded up; at most 2^53 ns (104 days), so that times of
  /// many moves can be added.
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

/// Reads "2GB/s", "500MB/s", "1.5 GiB/s". Nothing when `text` is no rate of at least 1 kB/s.
[[nodiscard]] std::optional<Bandwidth> parse_bandwidth(std::string_view text);

}  // namespace spillway::um
