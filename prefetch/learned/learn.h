#pragma once

#include <variant>

#include "prefetch/learned/learned_step.h"
#include "prefetch/learned/recording.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The memory that a learned plan is for.
struct LearnOptions {
  um::Bytes budget;  ///< near memory for the blocks that an iteration touches
  um::Bytes page;    ///< of the space: a power of two, 4 KiB to 2 MiB
  LinkProfile link;
  um::Nanoseconds together{10'000};  ///< GroupingOptions::together
};

/// A learned iteration and its moves. The plan is verified.
struct ReplayPlan {
  LearnedStep step;
  Plan plan;
  um::Nanoseconds computing{0};  ///< of a cycle without waits
  um::Nanoseconds planned{0};    ///< simulated, with the plan
  um::Nanoseconds on_demand{0};  ///< simulated, with page faults only
};

/// Learns from recorded cycles: makes a step from them and plans it (look_ahead_plan()).
/// Returns NotLearned if no plan keeps the budget, or page faults are as fast.
/// Requires: at least one cycle; all agree. Pure: may run on any thread.
[[nodiscard]] std::variant<ReplayPlan, NotLearned> learn(const RecordedCycles& recorded,
                                                         const LearnOptions& options);

}  // namespace spillway::prefetch
