#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/sweep/point.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {

/// What there is to say about a plan that does not verify, which is its planner's fault. `subject`
/// is what it plans: "vgg16 at batch 256 on v100".
[[nodiscard]] um::Error unsound_plan(std::string_view planner, const std::string& subject,
                                     um::Bytes budget, const std::string& violation);

/// Throws: unsound_plan() of the first point whose plan does not verify.
void expect_sound(std::span<const Point> points);

}  // namespace spillway
