#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/json.h"
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

}  // namespace spillway::prefetch
