#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nets/network.h"
#include "prefetch/files/machine.h"
#include "prefetch/moves/sub_batch.h"
#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// Sub-steps of a batch that have the same plan.
struct PlannedSubStep {
  std::size_t times = 1;  ///< how often in a batch
  const prefetch::TaskGraph* graph = nullptr;
  const prefetch::Profile* profile = nullptr;
  prefetch::Answer answer;
};

/// Plans a batch in sub-batches on a machine that is modelled, as its times at every size are
/// needed. The steps are those of make_sub_steps(), which a training runs.
class SubBatchPlanner {
 public:
  /// What a batch is planned for.
  struct Task {
    const nets::Network& network;
    const SizeModel& size_model;
    const prefetch::Machine& machine;
    StepOptions step;  ///< with the batch size of the whole batch
    um::Bytes budget;  ///< of the whole run
    PlanRequest request;
  };
  /// What `task` refers to must outlive it.
  explicit SubBatchPlanner(Task task) : task_{std::move(task)} {}

  /// By the planner's rule (Planner::sub_batch_rule). Sizes at which the planner has no plan are
  /// passed over. Throws: BudgetTooSmall when not even one sample works.
  [[nodiscard]] prefetch::SubBatches choose();

  /// One entry for each distinct sub-step, in order; `graph` and `profile` point into this object.
  /// Throws: BudgetTooSmall.
  [[nodiscard]] std::vector<PlannedSubStep> plan(const prefetch::SubBatches& batches);

  /// What a run with these sub-batches needs, evaluation included.
  [[nodiscard]] const prefetch::NearNeed& need(const prefetch::SubBatches& batches);

  /// The problem that the plan of one of plan()'s entries solves.
  [[nodiscard]] prefetch::Problem problem(const PlannedSubStep& step) const;

 private:
  // A batch cut in one way, and the times of its steps.
  struct Cut {
    std::unique_ptr<const Workload> workload;
    std::vector<prefetch::Profile> profiles;
  };
  using Outcome = std::variant<std::vector<PlannedSubStep>, BudgetTooSmall>;

  const Cut& find_cut(const prefetch::SubBatches& batches);
  Outcome try_plan(const prefetch::SubBatches& batches,
                   const prefetch::AskOptions& options = {.fixes_places = false});
  prefetch::SubBatchNeed working_set(std::size_t size);
  prefetch::SubBatchTrial attempt(const prefetch::SubBatches& batches);
  std::optional<prefetch::SubBatches> by_working_set();
  [[noreturn]] void refuse(const prefetch::SubBatches& batches, const BudgetTooSmall& refusal);

  Task task_;
  std::map<std::size_t, Cut> cuts_;  // by number of sub-batches
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
  /// How `planner`'s batch is to be cut. Throws: um::Error when the number is more than `batch`;
  /// BudgetTooSmall when none works.
  [[nodiscard]] prefetch::SubBatches resolve(std::size_t batch, SubBatchPlanner& planner) const;
};

}  // namespace spillway
