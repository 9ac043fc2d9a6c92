#pragma once

#include <cstddef>
#include <span>

#include "src/step/step.h"
#include "src/train/parts/gradient_layout.h"
#include "src/train/parts/shard_gradients.h"
#include "um/memory.h"

namespace spillway {

/// The gradients of parameters that the sub-steps of a batch add up, in one block of near memory as
/// GradientLayout places them. The memory must outlive it.
class GradientSums {
 public:
  /// Allocates Step::gradients of `step`, one of the sub-steps; nothing for another step. Throws:
  /// um::OutOfMemory.
  GradientSums(const Step& step, um::Memory& memory);

  /// Puts the address of each of them into `addresses`, by DataId. Requires: `step` is a sub-step
  /// of the same batch, or has none.
  void place(const Step& step, std::span<std::byte*> addresses) const;

  /// All of them as numbers, with zeros between. Requires: `step` exchanges them.
  [[nodiscard]] GradientBuckets buckets() const;

 private:
  GradientLayout layout_;
  um::Block block_;
};

}  // namespace spillway
