#include "src/cli/flags/number_checks.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "src/plan/percent.h"

namespace spillway::cli {
namespace {

template <typename Number>
bool is_all(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  return status == std::errc{} && stop == end;
}

}  // namespace

std::string check_whole_number(const std::string& text) {
  std::uint64_t number = 0;
  if (is_all(text, number)) return {};
  return "'" + text + "' is no whole number from 0 up";
}

std::string check_whole_number_from_one(const std::string& text) {
  std::uint64_t number = 0;
  if (is_all(text, number) && number > 0) return {};
  return "'" + text + "' is no whole number from 1 up";
}

std::string check_amount(const std::string& text) {
  float number = 0;
  if (is_all(text, number) && std::isfinite(number) && number >= 0) return {};
  return "'" + text + "' is no number from 0 up";
}

std::string check_below_one(const std::string& text) {
  double number = 0;
  if (is_all(text, number) && number >= 0 && number < 1) return {};
  return "'" + text + "' is no number from 0 up to below 1";
}

std::string check_above_zero(const std::string& text) {
  float number = 0;
  if (is_all(text, number) && std::isfinite(number) && number > 0) return {};
  return "'" + text + "' is no number above 0";
}

std::string check_noise(const std::string& text) {
  const auto fraction = parse_percent(text);
  if (fraction && *fraction < 1) return {};
  return "'" + text + "' is no noise: give a percentage below 100%, such as 10%";
}

}  // namespace spillway::cli
