#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/runtime/slab_address.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::prefetch {

/// Movable state in unified memory between the steps of a plan. Where nobody plans, page faults
/// bring it.
///
/// Thread safety: one thread at a time. Throws: what moves throw.
class ManagedState {
 public:
  /// `layout` and `hints` outlive it.
  ManagedState(const StepLayout& layout, const SlabAddress& address, um::Hints& hints);

  /// Nobody knows where it is: another step has had it.
  void lose() { is_home_ = false; }
  /// Brings each page to its home, near or far, unless it is there.
  void bring_home();
  /// Calls `use` with the addresses of blocks, all near. What is in their way is sent far.
  void use(std::span<const DataId> ids, um::Access access, const StepMemory::StateUse& use);

 private:
  void move(const std::vector<um::Range>& ranges, um::MemoryTier tier);
  [[nodiscard]] bool are_near(std::span<const um::Range> blocks) const;

  const StepLayout& layout_;
  const SlabAddress address_;
  um::Hints& hints_;
  std::vector<um::Range> near_;  // between steps: in order, as few as can be
  std::vector<um::Range> far_;   // likewise
  bool is_home_ = false;
};

}  // namespace spillway::prefetch
