#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "nets/network.h"
#include "prefetch/files/machine.h"
#include "prefetch/moves/micro_batch_size.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// Chooses how to cut a batch on a machine that is modelled, as its times at every size are needed.
class MicroBatchSearch {
 public:
  /// A batch to cut, and the conditions of its plan.
  struct Task {
    const nets::Network& network;
    const SizeModel& size_model;
    const prefetch::Machine& machine;
    StepOptions step;  ///< with the batch size of the whole batch
    um::Bytes budget;  ///< of the whole run
    PlanRequest request;
  };
  /// The objects that `task` refers to must outlive it.
  explicit MicroBatchSearch(Task task) : task_{std::move(task)} {}

  /// By the planner's rule (Planner::micro_batch_rule). Sizes at which the planner has no plan are
  /// passed over. Throws: BudgetTooSmall when not even one sample works.
  [[nodiscard]] prefetch::BatchCut choose() const;

 private:
  // A batch cut in one way, and its plan.
  struct Trial;

  [[nodiscard]] Trial try_cut(const prefetch::BatchCut& batches,
                              std::optional<um::Nanoseconds> shortest = {}) const;
  [[nodiscard]] prefetch::MicroBatchNeed working_set(std::size_t size) const;
  [[nodiscard]] std::optional<prefetch::BatchCut> by_working_set() const;
  [[noreturn]] void refuse(const Trial& trial) const;

  Task task_;
};

/// A user's wish how to cut a batch: one of these, or not at all.
///
/// Budgets in percent are relative to the need of the whole batch, and those of one of several
/// ranks to the need of its micro-batches. The smallest budget, `min`, is that of the batch as it
/// is cut. If the cut is to be found within the budget, `min` is that of the whole batch.
struct MicroBatchChoice {
  bool is_automatic = false;         ///< as MicroBatchSearch finds
  std::optional<std::size_t> count;  ///< the number of equal micro-batches
  std::optional<std::size_t> size;   ///< the most samples of each

  [[nodiscard]] bool is_given() const { return is_automatic || count || size; }
  /// True when it leaves a batch of `batch` whole, whatever the planner says.
  [[nodiscard]] bool leaves_whole(std::size_t batch) const;
  /// How a batch is to be cut; `search` is called where that is to be chosen. Throws: um::Error
  /// when the batch cannot be cut like this; what `search` throws.
  [[nodiscard]] prefetch::BatchCut resolve(std::size_t batch,
                                           const std::function<prefetch::BatchCut()>& search) const;
  /// How a batch of several ranks is to be cut: into equal micro-batches. Throws: um::Error when
  /// that is left open, or the batch cannot be cut like this.
  [[nodiscard]] prefetch::BatchCut resolve_for_ranks(std::size_t batch) const;
};

}  // namespace spillway
