#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Every planner there is, in the order in which help texts list them.
[[nodiscard]] const std::vector<std::unique_ptr<const Planner>>& planners();

/// The planner called `name`. Throws: um::Error that lists the names there are.
[[nodiscard]] const Planner& find_planner(std::string_view name);

}  // namespace spillway::prefetch
