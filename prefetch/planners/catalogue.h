#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Returns every planner, in the order of help texts.
[[nodiscard]] const std::vector<std::unique_ptr<const Planner>>& planners();

/// Returns the planner called `name`. Switches after a colon turn parts of it off
/// ("superneurons:no-cache"). Throws: um::Error that lists the planners.
[[nodiscard]] const Planner& find_planner(std::string_view name);

}  // namespace spillway::prefetch
