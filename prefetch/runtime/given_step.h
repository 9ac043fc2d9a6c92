#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/copy_arena.h"
#include "prefetch/simulate/timeline.h"
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

/// Runs the steps of a plan by giving a device all the work of a step ahead, in the order of a
/// StepProgram: the device waits where something must wait, and the host does not. What it gave
/// once it can keep and repeat.
///
/// To be used by work of the stream that the lanes belong to. All arguments outlive it.
class GivenStep {
 public:
  /// Enqueues the kernel of a run.
  using Launch = std::function<void(Position)>;

  /// Requires: `plan` verifies.
  GivenStep(const Plan& plan, FixedPlaces& places, um::Lanes& lanes);

  /// Gives the whole step, with marks where everything begins and ends. Throws: what `launch`
  /// throws; um::CudaError. After that only destruction is allowed.
  void run(const Launch& launch);
  /// When that was. Requires: run() was the last call, and all work has ended.
  [[nodiscard]] Timeline timeline();

  /// Keeps the step from run `first` on. Throws: as run().
  void keep(Position first, const Launch& launch);
  [[nodiscard]] bool has_kept() const { return lanes_.has_kept(); }
  /// Gives what was kept; the runs before it must have been given. Requires: has_kept().
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
