#include "src/train/setting_ranges.h"

#include <fmt/format.h>

namespace spillway {
namespace {

template <class Number>
std::string complaint_about(const SettingRange<Number>& range, Number number) {
  if (range.is_too_small(number)) {
    return fmt::format("is {} {}", range.is_above_least ? "not above" : "below", range.least);
  }
  if (range.is_too_large(number)) {
    return fmt::format("is {} {}", range.is_below_most ? "not below" : "above", range.most);
  }
  return {};
}

}  // namespace

std::string complaint(const SettingRange<float>& range, float number) {
  return complaint_about(range, number);
}

std::string complaint(const SettingRange<double>& range, double number) {
  return complaint_about(range, number);
}

}  // namespace spillway
