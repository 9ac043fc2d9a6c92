#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/shard_tree.h"

namespace spillway::testing {

/// Returns the result of a shard: `n` numbers in [-1, 1] with sums that depend on their order.
[[nodiscard]] std::vector<float> shard_numbers(std::size_t shard, std::size_t n);

/// Returns the partial sums of a range as a rank computes them: shard by shard, with a stack. They
/// belong to the nodes of the range's cover.
[[nodiscard]] std::vector<std::vector<float>> range_sums(const ShardTree& tree,
                                                         const ShardRange& range, std::size_t n);

/// Returns the sum of all shards by the tree's definition, from the root down.
[[nodiscard]] std::vector<float> tree_sum(std::size_t shards, std::size_t n);

[[nodiscard]] bool same_bits(std::span<const float> a, std::span<const float> b);

}  // namespace spillway::testing
