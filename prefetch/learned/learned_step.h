#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "prefetch/learned/recording.h"
#include "prefetch/liveness.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Why an iteration cannot be learned, or is better left to page faults; a sentence for the user.
struct NotLearned {
  std::string reason;
};

/// Which touches make one task.
struct GroupingOptions {
  /// A touch that follows the one before it so soon, with no allocation or free between, belongs to
  /// the same task: one operation that names all its operands and then computes.
  um::Nanoseconds together{10'000};
  um::Bytes max;  ///< as long as the blocks of the task take no more than this
};

/// One touch as it is expected when the iteration repeats.
struct ExpectedTouch {
  BlockName block;
  um::Access access = um::Access::kReadWrite;
  Position task = 0;  ///< in the order of the graph's tasks
};

/// A cycle of iterations as a step that planners understand.
struct LearnedStep {
  TaskGraph graph;
  Profile profile;
  std::vector<ExpectedTouch> touches;
  std::map<BlockName, DataId> blocks;  ///< every block that is touched
  std::vector<std::size_t> ends;       ///< by iteration: how many touches have come by its end
  std::uint64_t first = 0;             ///< the number of its first iteration, modulo the cycle's
};

/// Makes a step of recorded cycles: a task a touch, or a group of touches; it takes the median of
/// the gaps up to the next group.
///
/// A block that the cycle allocates, writes, and frees before the task after its last touch is a
/// tensor: its content dies with that task. Every other block is offloadable state, which begins
/// and ends the cycle near or far, as the planner chooses, and keeps its content all the time. So
/// are blocks that one iteration allocates and a later one frees: their content is carried over
/// also where the cycle begins, and each ends it where its successor in the next cycle begins it. A
/// write may be of a part of a block, so it counts as an update in place, except a tensor's first.
/// Blocks smaller than a page share their pages with others and stay near.
///
/// Returns NotLearned where the cycle leaves blocks behind for ever, or frees what none like it has
/// allocated: that does not repeat.
/// Requires: at least one cycle; all agree.
/// Complexity: O(recordings * events * log).
[[nodiscard]] std::variant<LearnedStep, NotLearned> learn_step(const RecordedCycles& recorded,
                                                               const LinkProfile& link,
                                                               um::Bytes page,
                                                               const GroupingOptions& grouping);

}  // namespace spillway::prefetch
