#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "um/stream.h"

namespace spillway::prefetch {

/// A plan as work for three lanes, in an order in which each piece comes after all that it waits
/// for: what is to be given ahead, by somebody who never waits himself.
struct StepProgram {
  /// The first so many pieces of `lane`'s work.
  struct Wait {
    um::Lane lane;
    std::uint32_t count;
    friend bool operator==(const Wait&, const Wait&) = default;
  };
  /// A run, an offload or a prefetch, by its lane.
  struct Command {
    um::Lane lane;
    std::uint32_t index;  ///< in the plan's sequence
    /// What is not sure anyway when it starts: work of its own lane before it, and what that and
    /// other waits have waited for. Who waits for an offload waits for its last readers, too.
    std::vector<Wait> waits;
    bool is_awaited = false;  ///< some command waits for just this one
  };
  std::vector<Command> commands;
};

/// From run `first` on: those before it have ended when the work begins, and are left out.
/// Complexity: O(runs + moves). Requires: `plan` verifies.
[[nodiscard]] StepProgram make_program(const Plan& plan, std::uint32_t first = 0);

}  // namespace spillway::prefetch
