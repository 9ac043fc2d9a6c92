#include "src/plan/percent.h"

#include <charconv>
#include <system_error>

namespace spillway {

std::optional<double> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  constexpr double kMax = 1e6;  // more than any use
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, percent, std::chars_format::fixed);
  if (status != std::errc{} || stop != end || !(percent >= 0 && percent <= kMax)) {
    return std::nullopt;
  }
  return percent / 100;
}

}  // namespace spillway
