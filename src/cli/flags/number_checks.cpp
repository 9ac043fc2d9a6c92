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

template <typename Number>
std::string check_below_one(const std::string& text) {
  Number number = 0;
  const bool is_number = is_all(text, number) && number >= 0;
  if (is_number && number < 1) return {};
  const bool is_rounded = is_number && number == 1 && text.starts_with('0');
  return "'" + text + "' is no number from 0 up to below 1" +
         (is_rounded ? ": it is so close that it is rounded to 1" : "");
}

template std::string check_below_one<float>(const std::string& text);
template std::string check_below_one<double>(const std::string& text);

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
