#include "src/cli/flags/duration.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr double kLongest = 1e12;  // nanoseconds: a thousand seconds

}  // namespace

std::optional<um::Nanoseconds> parse_duration(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (status != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit{stop, static_cast<std::size_t>(end - stop)};
  for (const auto& [name, nanoseconds] : kUnits) {
    if (unit != name || number * nanoseconds > kLongest) continue;
    return um::Nanoseconds{static_cast<std::int64_t>(std::llround(number * nanoseconds))};
  }
  return std::nullopt;
}

std::string duration_text(um::Nanoseconds time) {
  const auto count = static_cast<double>(time.count());
  if (count >= 1e9) return fmt::format("{:.4f} s", count * 1e-9);
  if (count >= 1e6) return fmt::format("{:.3f} ms", count * 1e-6);
  if (count >= 1e3) return fmt::format("{:.2f} us", count * 1e-3);
  return fmt::format("{} ns", time.count());
}

}  // namespace spillway::cli
