#include "um/amount.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace spillway::um {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 12> kUnits{{{"", 1.0},
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
                                                                      {"kiB", 1024.0}}};

std::string_view without_leading_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

}  // namespace

std::optional<double> parse_amount(std::string_view text) {
  double number = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (status != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit =
      without_leading_spaces(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return number * factor;
  }
  return std::nullopt;
}

}  // namespace spillway::um
