#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nets/network.h"
#include "prefetch/moves/micro_batch_size.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
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

/// The training of this rank's micro-batches as one step, graph and launches (moDNN section III-B).
/// The blocks and tasks of the second one are those of the first with "#2" behind their names.
/// Behind the task that completes a micro-batch's gradient of parameters stand those that add it to
/// the sums before ("conv1.accumulate#1"). The last micro-batch updates with the sums.
///
/// Small tensors of later micro-batches lie in those of the first (DataBlock::lies_in) if they take
/// more than an eighth of the parameters' bytes. Otherwise plans may also go layer by layer.
///
/// Each batch norm normalizes a micro-batch by its own statistics, and leaves the running ones that
/// the batch began with, moved by these, in a block of its own (Step::statistics). So a batch in
/// micro-batches is not the same training as the whole batch: normalizes_by_batch().
/// Throws: um::Error if two parts of the program would get the same name.
[[nodiscard]] Step make_program(const nets::Network& network, const SizeModel& size_model,
                                const StepOptions& options, const MicroBatches& batches);

/// The name of a block or task in the first micro-batch: "conv1.forward" of "conv1.forward#3".
[[nodiscard]] std::string_view name_in_first(std::string_view name);

/// By task, the first that takes as long with each of its algorithms: those of other micro-batches
/// of the same size do.
[[nodiscard]] std::vector<prefetch::TaskId> first_alike(const prefetch::TaskGraph& graph);

/// True when a task of the step keeps running statistics of its batch.
[[nodiscard]] bool normalizes_by_batch(const prefetch::TaskGraph& training);

/// The first batch norm of `network` that sees a single value per channel when `samples` are
/// trained on together: it would make zeros of whatever it reads. Nothing when there is none.
[[nodiscard]] std::optional<std::string> norm_of_one_value(const nets::Network& network,
                                                           std::size_t samples);

/// As norm_of_one_value() of the last micro-batch, where only that one is so small.
[[nodiscard]] std::optional<std::string> last_norm_of_one_value(const nets::Network& network,
                                                                const MicroBatches& batches);

/// Throws: um::Error that names the layer when a batch norm has one value per channel in every
/// micro-batch; PyTorch refuses it, too.
void expect_values_to_normalize(const nets::Network& network, const MicroBatches& batches);

}  // namespace spillway
