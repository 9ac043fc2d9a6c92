#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/sum_tree.h"

namespace spillway::testing {

/// Returns the result of a micro-batch: `n` numbers in [-1, 1] with sums that depend on their
/// order.
[[nodiscard]] std::vector<float> micro_batch_numbers(std::size_t micro_batch, std::size_t n);

/// Returns the partial sums of a range as a rank computes them: micro-batch by micro-batch, with a
/// stack. They belong to the nodes of the range's cover.
[[nodiscard]] std::vector<std::vector<float>> range_sums(const SumTree& tree,
                                                         const MicroBatchRange& range,
                                                         std::size_t n);

/// Returns the sum of all micro-batches by the tree's definition, from the root down.
[[nodiscard]] std::vector<float> tree_sum(std::size_t micro_batches, std::size_t n);

[[nodiscard]] bool same_bits(std::span<const float> a, std::span<const float> b);

}  // namespace spillway::testing
