#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "src/sweep/goals.h"
#include "src/sweep/point.h"

namespace spillway {

/// All there is to say about a point; `null` where there is nothing, such as the makespan of a
/// budget that is too small.
[[nodiscard]] nlohmann::json to_json(const Point& point);
[[nodiscard]] nlohmann::json to_json(std::span<const Point> points);

/// By name: the main measure as "value" and "goal", further ones as NAME and NAME_goal; `met` is
/// null where there were no points to judge, and false where `partial` is true: where not all that
/// the goal is about was evaluated.
[[nodiscard]] nlohmann::json to_json(std::span<const Goal> goals);

}  // namespace spillway
