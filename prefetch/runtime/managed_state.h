#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "prefetch/runtime/slab_address.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/task_graph.h"
#include "um/hints.h"
#include "um/range.h"

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
  /// Calls `use` with the address of a block, all of which is near. What is in its way is sent far.
  void use(DataId id, um::Access access, const std::function<void(std::byte*)>& use);

 private:
  void move(const std::vector<um::Range>& ranges, um::MemoryTier tier);
  [[nodiscard]] bool is_near(um::Range pages) const;

  const StepLayout& layout_;
  const SlabAddress address_;
  um::Hints& hints_;
  std::vector<um::Range> near_;  // between steps: in order, as few as can be
  std::vector<um::Range> far_;   // likewise
  bool is_home_ = false;
};

}  // namespace spillway::prefetch
