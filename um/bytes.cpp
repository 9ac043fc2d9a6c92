#include "um/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace spillway::um {
namespace {

// A letter alone is a power of 1024.
constexpr std::array<std::pair<std::string_view, double>, 20> kUnits{{{"", 1.0},
                                                                      {"B", 1.0},
                                                                      {"kB", 1e3},
                                                                      {"KB", 1e3},
                                                                      {"MB", 1e6},
                                                                      {"GB", 1e9},
                                                                      {"TB", 1e12},
                                                                      {"KiB", 1024.0},
                                                                      {"MiB", 1048576.0},
                                                                      {"GiB", 1073741824.0},
                                                                      {"TiB", 1099511627776.0},
                                                                      {"kiB", 1024.0},
                                                                      {"k", 1024.0},
                                                                      {"K", 1024.0},
                                                                      {"m", 1048576.0},
                                                                      {"M", 1048576.0},
                                                                      {"g", 1073741824.0},
                                                                      {"G", 1073741824.0},
                                                                      {"t", 1099511627776.0},
                                                                      {"T", 1099511627776.0}}};

}  // namespace

std::string to_string(Bytes size) {
  static constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(size.count());
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  const int decimals = unit == 0 || value >= 100 ? 0 : (value >= 10 ? 1 : 2);
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, kNames.at(unit));
  return text.data();
}

std::optional<double> parse_amount(std::string_view text) {
  double number = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (status != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    if (factor == 1 && number != std::trunc(number)) return std::nullopt;  // a part of a byte
    return number * factor;
  }
  return std::nullopt;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const std::optional<double> amount = parse_amount(text);
  if (!amount || *amount >= 18446744073709549568.0) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(std::round(*amount))};
}

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  constexpr double kSlowest = 1000;  // 9 TB then take 292 years, the maximum of Nanoseconds
  if (!text.ends_with("/s")) return std::nullopt;
  text.remove_suffix(2);
  const std::optional<double> amount = parse_amount(text);
  if (!amount || *amount < kSlowest || !std::isfinite(*amount)) return std::nullopt;
  return Bandwidth{*amount};
}

}  // namespace spillway::um
