#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "prefetch/files/json.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Returns a profile as JSON, format "spillway-profile" version 1 (prefetch/README.md). Tasks and
/// algorithms are identified by name.
[[nodiscard]] nlohmann::json to_json(const Profile& profile, const TaskGraph& graph);

/// Reads a profile for `graph`.
/// Throws: um::Error that names the place of the error, or says that the profile was made for
/// another graph.
[[nodiscard]] Profile read_profile(const JsonFile& file, const TaskGraph& graph);

/// Converts the link of a profile or a machine to and from JSON.
[[nodiscard]] nlohmann::json to_json(const LinkProfile& link);
[[nodiscard]] LinkProfile read_link(const JsonView& link);

/// Returns a rate per second, at least 1000: lower rates would make times overflow.
[[nodiscard]] double read_rate(const JsonView& rate);

/// The longest time of a task or a move in a profile: eleven days in nanoseconds.
inline constexpr std::uint64_t kLongestDuration = 1'000'000'000'000'000;

/// Returns the longest time of one of `tasks` tasks, limited so that their sum does not overflow.
[[nodiscard]] constexpr std::uint64_t longest_duration(std::size_t tasks) {
  return std::min<std::uint64_t>(kLongestDuration, (1ULL << 60U) / std::max<std::size_t>(1, tasks));
}

}  // namespace spillway::prefetch
