#pragma once

#include <string>

namespace spillway::cli {

/// Checks of CLI11's: the complaint about `text`, or nothing. CLI11 itself takes -1 for a huge
/// number and lets "nan" pass every range.
[[nodiscard]] std::string check_whole_number(const std::string& text);
[[nodiscard]] std::string check_whole_number_from_one(const std::string& text);
/// A number from 0 up that is not infinite.
[[nodiscard]] std::string check_amount(const std::string& text);
/// A number from 0 up, below 1, as a float or a double has it: as a float 0.99999999 is 1.
template <typename Number>
[[nodiscard]] std::string check_below_one(const std::string& text);
/// A number above 0 that is not infinite.
[[nodiscard]] std::string check_above_zero(const std::string& text);
/// A percentage below 100 %, by which tasks' times differ from what they should be.
[[nodiscard]] std::string check_noise(const std::string& text);

}  // namespace spillway::cli
