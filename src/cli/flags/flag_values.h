#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/cli/flags/cli11.h"
#include "src/train/checkpoint/settings.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {

/// Headings of a help text.
inline constexpr const char* kPlanningHeading = "Planning";
inline constexpr const char* kRanksHeading = "Ranks";
inline constexpr const char* kTrainingHeading = "Training";

/// What `parse` says when it throws um::Error, else nothing: makes a parser a check of CLI11's, so
/// that a malformed value is bad usage.
template <typename Parse>
[[nodiscard]] std::string complaint_of(const Parse& parse) {
  try {
    parse();
  } catch (const um::Error& error) {
    return error.what();
  }
  return {};
}

/// What to answer to a name that does not exist: "no network 'ResNet-50'; did you mean
/// 'resnet50'?", or `otherwise` where no name is close.
[[nodiscard]] std::string suggest_name(std::string_view kind, std::string_view wrong,
                                       std::span<const std::string> names, std::string otherwise);

/// Checks of CLI11's: the complaint about `text`, or nothing. CLI11 itself takes -1 for a huge
/// number and lets "nan" pass every range.
[[nodiscard]] std::string check_whole_number(const std::string& text);
[[nodiscard]] std::string check_whole_number_from_one(const std::string& text);
/// A check of whole numbers from `least` to `most`, which help texts show.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
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

/// Reads "20us", "1.5ms", "500ns", "2s". Nothing when `text` is no such time.
[[nodiscard]] std::optional<um::Nanoseconds> parse_duration(std::string_view text);

/// `time` for people, in the unit that suits it: "1.2345 s", "12.345 ms", "123.45 us", "123 ns".
[[nodiscard]] std::string duration_text(um::Nanoseconds time);

/// Complains about what is neither a machine's name nor a file; a check of CLI11's. A broken
/// machine file is no bad usage.
[[nodiscard]] std::string check_machine(const std::string& name_or_path);

}  // namespace spillway::cli
