#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace spillway::fuzz {

/// What is planned, far behind the reader:
/// - "trace": a trace is planned at several budgets by two planners, now and then by all; each plan
///   is verified, simulated and drawn.
/// - "profile": likewise, of a step whose times it has.
/// - "plan": a plan is verified, and if it holds simulated, drawn, placed and made a program.
/// - "planning": the one call of the planning library; the request is the first line of the input,
///   the trace the rest.
/// Plans and profiles are resealed: they say that they are of the step at hand.
[[nodiscard]] std::vector<Target> planning_targets();

}  // namespace spillway::fuzz
