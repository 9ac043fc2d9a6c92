#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/simulate/timeline.h"
#include "um/stream.h"

namespace spillway::prefetch {

/// A plan as work for three lanes, in topological order: each piece comes after all that it waits
/// for. Work can thus be submitted ahead by a thread that never blocks.
struct StepProgram {
  /// Waits for the first `count` pieces of `lane`'s work.
  struct Wait {
    um::Lane lane;
    std::uint32_t count;
    friend bool operator==(const Wait&, const Wait&) = default;
  };
  /// A run, an offload or a prefetch, depending on its lane.
  struct Command {
    um::Lane lane;
    std::uint32_t index;  ///< in the plan's sequence
    /// Waits that are not implied by earlier work of its own lane or by other waits (transitively).
    /// A wait for an offload includes its last readers.
    std::vector<Wait> waits;
    bool is_awaited = false;  ///< some command waits for exactly this one
  };
  std::vector<Command> commands;
};

/// Makes the program from run `first` on: earlier runs have ended before, and are left out.
/// Complexity: O(runs + moves). Requires: `plan` verifies.
[[nodiscard]] StepProgram make_program(const Plan& plan, std::uint32_t first = 0);

/// Runs the steps of a plan by submitting all work of a step ahead, in the order of a StepProgram.
/// The device waits for dependencies; the host does not. A submitted step can be captured and
/// replayed.
///
/// To be used by work of the lanes' stream. All arguments must outlive it.
class GivenStep {
 public:
  /// Enqueues the kernel of a run.
  using Launch = std::function<void(Position)>;

  /// Requires: `plan` verifies.
  GivenStep(const Plan& plan, FixedPlaces& places, um::Lanes& lanes);

  /// Submits the whole step, with events at each begin and end. Throws: what `launch` throws;
  /// um::CudaError. After that only destruction is allowed.
  void run(const Launch& launch);
  /// Returns the times of the last run(). Requires: run() was the last call, and all work has
  /// ended.
  [[nodiscard]] Timeline timeline();

  /// Captures the step from run `first` on. Throws: as run().
  void keep(Position first, const Launch& launch);
  [[nodiscard]] bool has_kept() const { return lanes_.has_kept(); }
  /// Submits the captured work; the runs before it must have been submitted. Requires: has_kept().
  /// Throws: um::CudaError.
  void repeat();

 private:
  struct Marks {
    um::Lanes::Mark begin;
    um::Lanes::Mark end;
  };

  void give(const StepProgram& program, const Launch& launch, std::vector<Marks>* marks);
  void copy(um::Lane lane, const FixedPlaces::Copy& copy);

  const Plan& plan_;
  FixedPlaces& places_;
  um::Lanes& lanes_;
  const StepProgram whole_;
  std::vector<Marks> marks_;  // by place in whole_
};

}  // namespace spillway::prefetch
