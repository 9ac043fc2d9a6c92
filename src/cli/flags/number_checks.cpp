#include "src/cli/flags/number_checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "src/plan/budget.h"

namespace spillway::cli {
namespace {

template <typename Number>
bool is_all(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  return status == std::errc{} && stop == end;
}

// "above 0", "from 0 up", "from 0 up to below 1"
template <typename Number>
std::string words_of(const SettingRange<Number>& range) {
  const std::string least = range.is_above_least ? fmt::format("above {}", range.least)
                                                 : fmt::format("from {} up", range.least);
  return range.is_below_most ? fmt::format("{} to below {}", least, range.most) : least;
}

template <typename Number>
std::string complaint_about(const std::string& text, const SettingRange<Number>& range) {
  Number number = 0;
  if (!is_all(text, number) || !std::isfinite(number)) {
    return fmt::format("'{}' is no number {}", text, words_of(range));
  }
  const std::string wrong = complaint(range, number);
  if (wrong.empty()) return {};
  long double exact = 0;
  const bool is_rounded = number == range.most && is_all(text, exact) && exact < range.most;
  return text + " " + wrong +
         (is_rounded ? fmt::format(": it is so close that it is rounded to {}", range.most) : "");
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
  return complaint_about(text, SettingRange<float>{});
}

std::string check_above_zero(const std::string& text) {
  return complaint_about(text, SettingRange<float>{.is_above_least = true});
}

NumberCheck within(const SettingRange<float>& range) {
  return [range](const std::string& text) { return complaint_about(text, range); };
}

NumberCheck within(const SettingRange<double>& range) {
  return [range](const std::string& text) { return complaint_about(text, range); };
}

std::string check_noise(const std::string& text) {
  const auto fraction = parse_percent(text);
  if (fraction && *fraction < 1) return {};
  return "'" + text + "' is no noise: give a percentage below 100%, such as 10%";
}

}  // namespace spillway::cli
