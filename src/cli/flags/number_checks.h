#pragma once

#include <functional>
#include <string>

#include "src/train/settings.h"

namespace spillway::cli {

/// Checks of CLI11's: the complaint about `text`, or nothing. CLI11 itself takes -1 for a huge
/// number and lets "nan" pass every range.
[[nodiscard]] std::string check_whole_number(const std::string& text);
[[nodiscard]] std::string check_whole_number_from_one(const std::string& text);
/// A number from 0 up that is not infinite.
[[nodiscard]] std::string check_amount(const std::string& text);
/// A number above 0 that is not infinite.
[[nodiscard]] std::string check_above_zero(const std::string& text);
/// A percentage below 100 %, by which tasks' times differ from what they should be.
[[nodiscard]] std::string check_noise(const std::string& text);

/// A check of CLI11's for a number in a range: that of a float where the setting is one, since a
/// double just below 1 is no float below 1.
using NumberCheck = std::function<std::string(const std::string& text)>;
[[nodiscard]] NumberCheck within(const SettingRange<float>& range);
[[nodiscard]] NumberCheck within(const SettingRange<double>& range);

}  // namespace spillway::cli
