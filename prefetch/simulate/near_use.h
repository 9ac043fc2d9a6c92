#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The purpose of a stretch of near memory.
enum class NearPurpose {
  kPinned,    ///< never moves: state, small tensors, the buffer of small workspaces
  kState,     ///< offloadable state
  kSaved,     ///< written by the forward pass, read by the backward pass
  kPassing,   ///< written and consumed by the forward pass
  kGradient,  ///< written by the backward pass
  kWorkspace  ///< of one run
};

/// Returns "always near", "state", "saved", "passing", "gradient" or "workspace".
[[nodiscard]] std::string to_string(NearPurpose purpose);

/// A change by `bytes` of one holder's near memory.
struct NearChange {
  um::Nanoseconds time{0};
  std::int64_t bytes = 0;
  NearPurpose purpose = NearPurpose::kPinned;
  std::uint32_t holder = 0;  ///< the run of a workspace, the DataId of a block
};

/// Returns the changes of near memory in order of time when `plan` runs as `timeline` says; at
/// equal times, releases come first. Everything that is always near is one holder, at time 0. For a
/// plan that pages on demand: live blocks, near or not.
/// Requires: `timeline` has an interval for each of the plan's runs.
[[nodiscard]] std::vector<NearChange> near_changes(const TaskGraph& graph, const Plan& plan,
                                                   const Timeline& timeline);

}  // namespace spillway::prefetch
