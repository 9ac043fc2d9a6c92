#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/tree_reduction.h"
#include "src/step/step.h"
#include "src/train/parts/shard_gradients.h"
#include "um/memory.h"

namespace spillway {

/// The gradients of parameters that the sub-steps of a batch add up, in one block of near memory:
/// bucket after bucket where `step` exchanges them. The memory must outlive it.
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
  um::Bytes place_block(const Step& step, prefetch::DataId id, um::Bytes begin);
  [[nodiscard]] static std::size_t index_of(const Step& step, prefetch::DataId id);
  [[nodiscard]] NumberSlice numbers(const Step& step, prefetch::DataId id) const;
  [[nodiscard]] BucketExchange exchange_of(const Step& step,
                                           const prefetch::GradientExchange& exchange) const;

  std::vector<std::size_t> offsets_;  // by Step::gradients
  std::vector<BucketExchange> exchanges_;
  um::Block block_;
};

}  // namespace spillway
