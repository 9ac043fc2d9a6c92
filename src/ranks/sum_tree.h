#pragma once

#include <cstddef>
#include <vector>

namespace spillway {

/// Micro-batches [first, end) of a global batch.
struct MicroBatchRange {
  std::size_t first = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t count() const { return end - first; }
  [[nodiscard]] bool contains(const MicroBatchRange& other) const {
    return first <= other.first && other.end <= end;
  }
  friend bool operator==(const MicroBatchRange&, const MicroBatchRange&) = default;
};

/// Returns the micro-batches of rank r of R: [S r / R, S (r + 1) / R). Empty for some ranks if
/// there are more ranks than micro-batches.
[[nodiscard]] MicroBatchRange micro_batches_of_rank(std::size_t micro_batches, std::size_t ranks,
                                                    std::size_t rank);

/// The order in which results of S micro-batches are summed, whichever rank computes them: a binary
/// tree with micro-batches as leaves. Its root is [0, S). A node [a, b) of more than one
/// micro-batch is the sum of [a, m) and [m, b), in this order, with m = a + the largest power of
/// two below b - a.
///
/// A rank sums its range micro-batch by micro-batch with a stack. It pushes micro-batch i and then,
/// merges_after(range, i) times, replaces the two topmost sums by their sum. At the end the stack
/// holds, from the bottom, the sums of cover(range).
class SumTree {
 public:
  /// Requires: `micro_batches` is not zero.
  explicit SumTree(std::size_t micro_batches);

  [[nodiscard]] std::size_t micro_batches() const { return micro_batches_; }
  [[nodiscard]] MicroBatchRange root() const { return {0, micro_batches_}; }

  /// Returns the largest nodes within `range`, in order; together they are the range. At most 2
  /// log2(S) nodes; one node if R divides S and S / R is a power of two.
  [[nodiscard]] std::vector<MicroBatchRange> cover(const MicroBatchRange& range) const;

  /// Number of merges of two sums after `pushed` completes, given all earlier nodes of the range:
  /// the number of larger nodes of the range that end with it. Requires: `range` contains `pushed`.
  /// Complexity: O(log S).
  [[nodiscard]] std::size_t merges_after(const MicroBatchRange& range,
                                         const MicroBatchRange& pushed) const;
  [[nodiscard]] std::size_t merges_after(const MicroBatchRange& range,
                                         std::size_t micro_batch) const {
    return merges_after(range, {micro_batch, micro_batch + 1});
  }

  /// The largest size of the stack while a range is summed, a pushed micro-batch included; 0 for an
  /// empty range. Complexity: O(range log S).
  [[nodiscard]] std::size_t stack_depth(const MicroBatchRange& range) const;

 private:
  std::size_t micro_batches_;
};

}  // namespace spillway
