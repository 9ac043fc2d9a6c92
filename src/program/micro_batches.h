#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "prefetch/moves/micro_batch_size.h"
#include "prefetch/task_graph.h"
#include "src/ranks/sum_tree.h"

namespace spillway {

/// A batch cut into micro-batches. One rank trains some of them. Gradients are added up in the
/// order of a SumTree over all of them: the number of ranks never shows in the bits.
struct MicroBatches {
  std::size_t batch = 1;      ///< samples of all of them
  std::size_t size = 1;       ///< samples of each but the last, which may have fewer
  SumTree tree{1};            ///< over all of them
  MicroBatchRange own{0, 1};  ///< of this rank; not empty

  [[nodiscard]] std::size_t count() const { return tree.micro_batches(); }
  /// Samples of this rank, and those of the batch that stand before them.
  [[nodiscard]] std::size_t own_samples() const;
  [[nodiscard]] std::size_t samples_before() const { return own.first * size; }
  /// The number of sums of this rank that wait for the exchange between ranks, besides the last
  /// one: it has one for each of the largest nodes of the tree.
  [[nodiscard]] std::size_t waiting_sums() const { return tree.cover(own).size() - 1; }
};

/// All micro-batches of a batch of `samples`, cut as `cut` says.
[[nodiscard]] MicroBatches all_of(std::size_t samples, const prefetch::BatchCut& cut);

/// Returns the part of `all` micro-batches that a rank trains. Throws: um::Error where one of the
/// ranks would have none.
[[nodiscard]] MicroBatches part_of_rank(MicroBatches all, std::size_t rank, std::size_t ranks);

/// Stands in names before the number of a micro-batch.
inline constexpr char kMicroBatchMark = '#';

/// The name of a block or task in the first micro-batch: "conv1.forward" of "conv1.forward#3".
[[nodiscard]] std::string_view name_in_first(std::string_view name);

/// By task, the first that takes as long with each of its algorithms: those of other micro-batches
/// of the same size do.
[[nodiscard]] std::vector<prefetch::TaskId> first_alike(const prefetch::TaskGraph& graph);

/// True when a task of the step keeps running statistics of its batch.
[[nodiscard]] bool normalizes_by_batch(const prefetch::TaskGraph& training);

}  // namespace spillway
