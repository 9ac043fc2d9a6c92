#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "nets/network.h"
#include "prefetch/files/machine.h"
#include "prefetch/moves/sub_batch.h"
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

  /// By the planner's rule (Planner::sub_batch_rule). Sizes at which the planner has no plan are
  /// passed over. Throws: BudgetTooSmall when not even one sample works.
  [[nodiscard]] prefetch::SubBatches choose() const;

 private:
  // A batch cut in one way, and its plan.
  struct Trial;

  [[nodiscard]] Trial try_cut(const prefetch::SubBatches& batches) const;
  [[nodiscard]] prefetch::SubBatchNeed working_set(std::size_t size) const;
  [[nodiscard]] std::optional<prefetch::SubBatches> by_working_set() const;
  [[noreturn]] void refuse(const Trial& trial) const;

  Task task_;
};

/// Throws: um::Error when `text` is none of what SubBatchChoice may hold.
void expect_sub_batch(const std::string& text);

/// How a user wants a batch cut: "off", "auto", or the largest number of samples in a sub-batch.
struct SubBatchChoice {
  std::string text = "off";

  [[nodiscard]] bool is_off() const { return text == "off"; }
  /// True when it leaves a batch of `batch` whole, whatever the planner says.
  [[nodiscard]] bool leaves_whole(std::size_t batch) const;
  /// True when it may stand for a choice made before: `kept` samples of `batch`, or the whole
  /// batch.
  [[nodiscard]] bool agrees_with(std::optional<std::size_t> kept, std::size_t batch) const;
  /// How a batch is to be cut; `search` is called where that is to be chosen. Throws: um::Error
  /// when the number is more than `batch`; what `search` throws.
  [[nodiscard]] prefetch::SubBatches resolve(
      std::size_t batch, const std::function<prefetch::SubBatches()>& search) const;
};

}  // namespace spillway
