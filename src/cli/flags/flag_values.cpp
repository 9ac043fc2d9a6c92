#include "src/cli/flags/flag_values.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "prefetch/files/machine.h"
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
    return fmt::format("'{}' is not a number {}", text, words_of(range));
  }
  const std::string wrong = complaint(range, number);
  if (wrong.empty()) return {};
  long double exact = 0;
  const bool is_rounded = number == range.most && is_all(text, exact) && exact < range.most;
  return text + " " + wrong +
         (is_rounded ? fmt::format(": it is so close that it is rounded to {}", range.most) : "");
}

constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr double kLongest = 1e12;  // nanoseconds: a thousand seconds

}  // namespace

std::string suggest_name(std::string_view kind, std::string_view wrong,
                         std::span<const std::string> names, std::string otherwise) {
  const auto nearest = um::nearest_name(wrong, names);
  if (!nearest) return otherwise;
  return "no " + std::string{kind} + " '" + std::string{wrong} + "'; did you mean '" + *nearest +
         "'?";
}

std::string check_whole_number(const std::string& text) {
  std::uint64_t number = 0;
  if (is_all(text, number)) return {};
  return "'" + text + "' is not a whole number from 0 up";
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return {[least, most](const std::string& text) {
            std::uint64_t number = 0;
            if (is_all(text, number) && number >= least && number <= most) return std::string{};
            return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
          },
          fmt::format("{} to {}", least, most)};
}

std::string check_whole_number_from_one(const std::string& text) {
  std::uint64_t number = 0;
  if (is_all(text, number) && number > 0) return {};
  return "'" + text + "' is not a whole number from 1 up";
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

std::string check_machine(const std::string& name_or_path) {
  std::error_code ignored;
  if (std::filesystem::exists(name_or_path, ignored)) return {};
  std::string complaint =
      complaint_of([&] { static_cast<void>(prefetch::find_machine(name_or_path)); });
  if (complaint.empty()) return complaint;
  std::vector<std::string> names;
  for (const prefetch::Machine& machine : prefetch::built_in_machines()) {
    names.push_back(machine.name);
  }
  return suggest_name("machine", name_or_path, names, complaint);
}

}  // namespace spillway::cli
