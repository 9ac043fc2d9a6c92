#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "src/sweep/point.h"

namespace spillway {

/// All there is to say about a point; `null` where there is nothing, such as the makespan of a
/// budget that is too small.
[[nodiscard]] nlohmann::json to_json(const Point& point);
[[nodiscard]] nlohmann::json to_json(std::span<const Point> points);

}  // namespace spillway
