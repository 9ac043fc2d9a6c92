#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/moves/sub_batch.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/program/step.h"

namespace spillway {

/// Which of a batch's sub-batches a sub-step is of; a batch has at least two.
enum class SubStepPlace {
  kFirst,   ///< leaves its gradients of parameters
  kMiddle,  ///< adds its own to those that are there
  kLast     ///< adds its own, and updates the parameters with the sums
};

/// How sub-steps add up a gradient to which several tasks contribute.
enum class GradientParts {
  kInPlace,  ///< each task adds its own to the sum
  /// A sub-batch's gradient is complete before it is added to those of others: the same bits
  /// whichever sub-batches have gone before, for a tensor that lives longer.
  kWhole
};

/// The step of one sub-batch, graph and launches, from the training step of the sub-batch's size
/// (moDNN section III-B). Gradients of parameters outlive it: they are state, always near, in
/// Step::gradients. The first sub-step writes them; the others make a tensor each ("conv1.dw_part")
/// which the task right behind the one that completes it ("conv1.accumulate") adds to the sum
/// ("conv1.dw").
///
/// Batch norm normalizes each sub-batch by its own statistics and moves its running statistics once
/// a sub-batch, so a batch in sub-batches is then not the same training as the whole batch; see
/// normalizes_by_batch().
/// Throws: um::Error where the network's layers have names of which two parts would get one.
[[nodiscard]] Step make_sub_step(const Step& training, SubStepPlace place,
                                 const nets::Network& network,
                                 GradientParts parts = GradientParts::kInPlace);

/// A step that runs some times in a batch.
struct RepeatedStep {
  Step step;
  std::size_t times = 1;
  std::size_t batch = 1;  ///< samples of one
};

/// The training of a batch cut as `batches` says, in order: the training step itself where it is
/// not cut, else the first sub-step, those between, which are all the same, and the last one, which
/// has a size of its own. `options` are those of the whole batch.
[[nodiscard]] std::vector<RepeatedStep> make_sub_steps(const nets::Network& network,
                                                       const SizeModel& size_model,
                                                       const StepOptions& options,
                                                       const prefetch::SubBatches& batches);

/// True when a task of the step keeps running statistics of its batch.
[[nodiscard]] bool normalizes_by_batch(const prefetch::TaskGraph& training);

/// The first batch norm of `network` that sees a single value per channel when `samples` are
/// trained on together: it would make zeros of whatever it reads. Nothing when there is none.
[[nodiscard]] std::optional<std::string> norm_of_one_value(const nets::Network& network,
                                                           std::size_t samples);

/// As norm_of_one_value() of the last sub-batch, where only that one is so small.
[[nodiscard]] std::optional<std::string> last_norm_of_one_value(
    const nets::Network& network, std::size_t batch, const prefetch::SubBatches& batches);

/// Throws: um::Error that names the layer when training on `batch` samples, cut as `batches` says,
/// has a batch norm of one value per channel in every part; PyTorch refuses it, too.
void expect_values_to_normalize(const nets::Network& network, std::size_t batch,
                                const prefetch::SubBatches& batches);

}  // namespace spillway
