#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "prefetch/learned/recording.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The reason why an iteration cannot be learned, or is left to page faults; a sentence for the
/// user.
struct NotLearned {
  std::string reason;
};

/// Rules for grouping touches into tasks.
struct GroupingOptions {
  /// A touch this soon after the previous one, without an allocation or free between, joins its
  /// task: an operation that declares all its operands before it computes.
  um::Nanoseconds together{10'000};
  um::Bytes max;  ///< limit for the blocks of a task
};

/// A touch that is expected when the iteration repeats.
struct ExpectedTouch {
  BlockName block;
  um::Access access = um::Access::kReadWrite;
  Position task = 0;  ///< in the order of the graph's tasks
};

/// A cycle of iterations as a step for planners.
struct LearnedStep {
  TaskGraph graph;
  Profile profile;
  std::vector<ExpectedTouch> touches;
  std::map<BlockName, DataId> blocks;  ///< every block that is touched
  std::vector<std::size_t> ends;       ///< by iteration: number of touches until its end
  std::uint64_t first = 0;             ///< number of its first iteration, modulo the cycle
};

/// Makes a step from recorded cycles: a task per touch or group of touches. A task takes the median
/// gap until the next group.
///
/// A block that the cycle allocates, writes, and frees before the task after its last touch is a
/// tensor: its content dies with that task. Every other block is offloadable state, which begins
/// and ends the cycle near or far, as the planner chooses, and always keeps its content. This
/// includes blocks that one iteration allocates and a later one frees: their content is carried
/// over into the next cycle, where their successors begin as they end. A write may cover a part of
/// a block, so it counts as an update in place, except a tensor's first. Blocks smaller than a page
/// share pages with others and stay near.
///
/// Returns NotLearned if the cycle leaks blocks, or frees blocks without matching allocations: it
/// does not repeat.
/// Requires: at least one cycle; all agree.
/// Complexity: O(recordings * events * log).
[[nodiscard]] std::variant<LearnedStep, NotLearned> learn_step(const RecordedCycles& recorded,
                                                               const LinkProfile& link,
                                                               um::Bytes page,
                                                               const GroupingOptions& grouping);

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
