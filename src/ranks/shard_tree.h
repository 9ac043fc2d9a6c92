#pragma once

#include <cstddef>
#include <vector>

namespace spillway {

/// Shards [first, end) of a global batch.
struct ShardRange {
  std::size_t first = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t count() const { return end - first; }
  [[nodiscard]] bool contains(const ShardRange& other) const {
    return first <= other.first && other.end <= end;
  }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// Returns the shards of rank r of R: [S r / R, S (r + 1) / R). Empty for some ranks if there are
/// more ranks than shards.
[[nodiscard]] ShardRange shards_of_rank(std::size_t shards, std::size_t ranks, std::size_t rank);

/// The order in which results of S shards are summed, whichever rank computes them: a binary tree
/// with shards as leaves. Its root is [0, S). A node [a, b) of more than one shard is the sum of
/// [a, m) and [m, b), in this order, with m = a + the largest power of two below b - a.
///
/// A rank sums its range shard by shard with a stack. It pushes shard i and then,
/// merges_after(range, i) times, replaces the two topmost sums by their sum. At the end the stack
/// holds, from the bottom, the sums of cover(range).
class ShardTree {
 public:
  /// Requires: `shards` is not zero.
  explicit ShardTree(std::size_t shards);

  [[nodiscard]] std::size_t shards() const { return shards_; }
  [[nodiscard]] ShardRange root() const { return {0, shards_}; }

  /// Returns the largest nodes within `range`, in order; together they are the range. At most 2
  /// log2(S) nodes; one node if R divides S and S / R is a power of two.
  [[nodiscard]] std::vector<ShardRange> cover(const ShardRange& range) const;

  /// Number of merges of two sums after `pushed` completes, given all earlier nodes of the range:
  /// the number of larger nodes of the range that end with it. Requires: `range` contains `pushed`.
  /// Complexity: O(log S).
  [[nodiscard]] std::size_t merges_after(const ShardRange& range, const ShardRange& pushed) const;
  [[nodiscard]] std::size_t merges_after(const ShardRange& range, std::size_t shard) const {
    return merges_after(range, {shard, shard + 1});
  }

  /// The largest size of the stack while a range is summed, a pushed shard included; 0 for an empty
  /// range. Complexity: O(range log S).
  [[nodiscard]] std::size_t stack_depth(const ShardRange& range) const;

 private:
  std::size_t shards_;
};

}  // namespace spillway
