#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Every planner there is, in the order in which help texts list them.
[[nodiscard]] const std::vector<std::unique_ptr<const Planner>>& planners();

/// The planner called `name`; after a colon a name may say what of the planner is switched off
/// ("superneurons:no-cache"). Throws: um::Error that lists what there is.
[[nodiscard]] const Planner& find_planner(std::string_view name);

}  // namespace spillway::prefetch
