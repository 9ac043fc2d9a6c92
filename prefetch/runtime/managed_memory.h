#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/runtime/plan_walker.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::prefetch {

/// Movable state in unified memory between the steps of a plan. Without a plan, page faults move
/// it.
///
/// Thread safety: one thread at a time. Throws: what moves throw.
class ManagedState {
 public:
  /// `layout` and `hints` must outlive it.
  ManagedState(const StepLayout& layout, const SlabAddress& address, um::Hints& hints);

  /// Forgets where the state is, because another step has moved it.
  void lose() { is_home_ = false; }
  /// Moves each page to its home, near or far, unless it is there.
  void bring_home();
  /// Calls `use` with the addresses of blocks, all near. Sends other state far to make room.
  void use(std::span<const DataId> ids, um::Access access, const StepMemory::StateUse& use);

 private:
  void move(const std::vector<um::Range>& ranges, um::MemoryTier tier);
  [[nodiscard]] bool are_near(std::span<const um::Range> blocks) const;

  const StepLayout& layout_;
  const SlabAddress address_;
  um::Hints& hints_;
  std::vector<um::Range> near_;  // between steps: sorted, as few ranges as possible
  std::vector<um::Range> far_;   // as near_
  bool is_home_ = false;
};

/// Unified memory driven by a plan's hints: prefetches and offloads as the plan says, near memory
/// for blocks that a run overwrites, discard of dead blocks. A plan of Residency::kOnDemand gives
/// no hints: its pages are moved by page faults.
class ManagedMemory final : public StepMemory {
 public:
  /// `address` lies in the slab that `hints` manages. `layout` and `hints` must outlive this.
  ManagedMemory(const StepLayout& layout, const SlabAddress& address, um::Hints& hints);

  void enter() override {
    state_.lose();
    state_.bring_home();
  }
  void with_state(std::span<const DataId> ids, um::Access access, const StateUse& use) override;
  void wait_for(const Progress& after) override { walker_.wait_for(after); }
  [[nodiscard]] bool needs_each_end() const override { return hints_.waits_for_discards(); }
  [[nodiscard]] um::FarSide* far_side() override { return hints_.far_side(); }
  // State lies at the beginning of the slab.
  [[nodiscard]] um::Bytes far_offset(DataId id) const override {
    return layout_.state.offsets[static_cast<std::size_t>(id)];
  }
  void begin_step() override;
  void begin_run(Position position) override;
  [[nodiscard]] std::byte* address(DataId id) const override { return address_.block(id); }
  [[nodiscard]] std::byte* workspace() const override { return address_.workspace(position_); }
  void after_launch(Position position) override;
  void end_run(Position position) override;
  void fail(std::exception_ptr error) override { walker_.fail(std::move(error)); }
  void end_step() override;
  [[nodiscard]] Timeline moves() const override { return walker_.moves(); }

 private:
  [[nodiscard]] bool gives_hints() const { return layout_.plan.residency == Residency::kPlanned; }
  void wait_for_prefetches(std::uint32_t count);

  const StepLayout& layout_;
  SlabAddress address_;
  um::Hints& hints_;
  ManagedState state_;
  std::vector<std::vector<um::Use>> uses_;  // by position
  Position position_ = 0;
  std::uint32_t awaited_ = 0;  // prefetches of the step that launches wait for, or that have ended
  PlanWalker walker_;
};

}  // namespace spillway::prefetch
