#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "prefetch/files/json.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A profile as JSON, format "spillway-profile" version 1 (prefetch/README.md). Tasks and
/// algorithms go by name.
[[nodiscard]] nlohmann::json to_json(const Profile& profile, const TaskGraph& graph);

/// Reads a profile for `graph`.
/// Throws: um::Error that names the place of what is wrong, or says that the profile was made for
/// another graph.
[[nodiscard]] Profile read_profile(const JsonFile& file, const TaskGraph& graph);

/// The link of a profile or a machine, as it stands in their files.
[[nodiscard]] nlohmann::json to_json(const LinkProfile& link);
[[nodiscard]] LinkProfile read_link(const JsonView& link);

/// A number of something per second, at least 1000: slower, and times overflow.
[[nodiscard]] double read_rate(const JsonView& rate);

/// The longest time of a task or a move in a profile, in nanoseconds: eleven days.
inline constexpr std::uint64_t kLongestDuration = 1'000'000'000'000'000;

/// The longest time of one of so many tasks: less where their sum would be no number.
[[nodiscard]] constexpr std::uint64_t longest_duration(std::size_t tasks) {
  return std::min<std::uint64_t>(kLongestDuration, (1ULL << 60U) / std::max<std::size_t>(1, tasks));
}

}  // namespace spillway::prefetch
