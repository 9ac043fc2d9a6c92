#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/shard_tree.h"

namespace spillway::testing {

/// What a shard gives: `n` numbers in [-1, 1], whose sums depend on their order.
[[nodiscard]] std::vector<float> shard_numbers(std::size_t shard, std::size_t n);

/// The partial sums of a range, as a rank makes them: one shard after the other, with a stack. They
/// are of the nodes of the range's cover.
[[nodiscard]] std::vector<std::vector<float>> range_sums(const ShardTree& tree,
                                                         const ShardRange& range, std::size_t n);

/// The sum of all shards by the tree's definition, from the root downwards.
[[nodiscard]] std::vector<float> tree_sum(std::size_t shards, std::size_t n);

[[nodiscard]] bool same_bits(std::span<const float> a, std::span<const float> b);

}  // namespace spillway::testing
