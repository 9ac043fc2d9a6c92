#pragma once

#include <algorithm>
#include <memory>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "tests/prefetch/runtime/toy_step.h"
#include "um/host/host_device.h"
#include "um/ledger.h"

namespace spillway::prefetch::testing {

/// A finished execution of a plan.
struct Executed {
  ToyResult result;
  um::Counters counters;
  um::Bytes peak;                 ///< of near memory, what is always near included
  bool has_fixed_places = false;  ///< in copy mode
  std::uint64_t compactions = 0;
};

inline constexpr std::uint64_t kSteps = 2;

/// A plan with everything that is always near, ready for any memory.
struct Stage {
  Stage(const TaskGraph& graph, const Plan& plan)
      : layout{graph, plan},
        state{graph},
        buffer(PinnedBlocks::buffer_size(graph, layout.block_sizes).count() / 8 + 1),
        pinned{graph, layout.block_sizes, state.addresses(),
               std::as_writable_bytes(std::span{buffer})},
        ledger{plan.budget} {
    ledger.charge(layout.block_sizes.pinned());
  }

  /// Near bytes that the budget leaves for what moves.
  [[nodiscard]] um::Bytes room() const {
    return um::round_down(ledger.limit() - ledger.in_use(), layout.plan.page);
  }

  StepLayout layout;
  ToyState state;
  std::vector<std::uint64_t> buffer;  ///< small tensors and workspaces
  PinnedBlocks pinned;
  um::Ledger ledger;
};

inline Executed execute_resident(const TaskGraph& graph, const Plan& plan) {
  Stage stage{graph, plan};
  std::vector<std::uint64_t> slab(stage.layout.placement.extent.count() / 8);
  ResidentMemory memory{
      SlabAddress{stage.layout, stage.pinned, std::as_writable_bytes(std::span{slab})}};
  return {.result = run_planned(stage.layout, memory, stage.state, kSteps)};
}

/// Dead pages are poisoned, or kept mapped as in a training.
inline Executed execute_managed(const TaskGraph& graph, const Plan& plan, um::Paging paging,
                                bool poison = true) {
  Stage stage{graph, plan};
  um::HostDevice device;
  const um::Bytes size = std::max(plan.page, stage.layout.placement.extent);
  const auto space = device.make_managed_space({.size = size,
                                                .near = std::min(size, stage.room()),
                                                .page = plan.page,
                                                .paging = paging,
                                                .poison = poison},
                                               stage.ledger);
  ManagedMemory memory{stage.layout, SlabAddress{stage.layout, stage.pinned, space->slab()},
                       space->hints()};
  ToyResult result = run_planned(stage.layout, memory, stage.state, kSteps);
  return {.result = std::move(result), .counters = space->counters(), .peak = stage.ledger.peak()};
}

inline Executed execute_copy(const TaskGraph& graph, const Plan& plan) {
  Stage stage{graph, plan};
  um::HostDevice device;
  const um::Bytes far = FarPlacement{stage.layout}.extent;
  const auto space =
      device.make_copy_space({.size = std::max(plan.page, far), .near = stage.room()});
  CopyMemory memory{stage.layout, stage.pinned, space->near(), space->copies(), stage.ledger};
  ToyResult result = run_planned(stage.layout, memory, stage.state, kSteps);
  return {.result = std::move(result),
          .counters = space->counters(),
          .peak = stage.ledger.peak(),
          .has_fixed_places = memory.placed().fits,
          .compactions = memory.compactions()};
}

}  // namespace spillway::prefetch::testing
