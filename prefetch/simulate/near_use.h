#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// What a stretch of near memory is for.
enum class NearPurpose {
  kPinned,    ///< what no plan may move: state, small tensors, the buffer of small workspaces
  kState,     ///< offloadable state
  kSaved,     ///< made going forward, read going backward
  kPassing,   ///< made and used up going forward
  kGradient,  ///< made going backward
  kWorkspace  ///< of one run
};

/// "always near", "state", "saved", "passing", "gradient", "workspace".
[[nodiscard]] std::string to_string(NearPurpose purpose);

/// At `time` the near memory of one holder grows by `bytes`.
struct NearChange {
  um::Nanoseconds time{0};
  std::int64_t bytes = 0;
  NearPurpose purpose = NearPurpose::kPinned;
  std::uint32_t holder = 0;  ///< of a workspace the run, of a block its DataId
};

/// Who takes near memory and gives it back, in the order of time, when `plan` runs as `timeline`
/// says; at one moment, what is freed comes first. What is always near is one holder, at time 0.
/// For a plan that pages on demand: the live blocks, whether near or not.
/// Requires: `timeline` has an interval for each of the plan's runs.
[[nodiscard]] std::vector<NearChange> near_changes(const TaskGraph& graph, const Plan& plan,
                                                   const Timeline& timeline);

}  // namespace spillway::prefetch
