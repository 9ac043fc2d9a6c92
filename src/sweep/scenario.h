#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/workload.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// A network at a batch size on a machine: where budgets and strategies are compared.
struct Scenario {
  std::string net;
  std::size_t batch = 0;
  std::string machine;
  std::string precision;   ///< "fp32", "tf32" or "bf16"
  double link_factor = 1;  ///< the machine's link times this
  /// Shared by the scenarios that differ in the machine alone.
  std::shared_ptr<const Workload> workload;
  prefetch::Profile profile;
  prefetch::NearNeed need;     ///< what budgets are relative to
  um::Nanoseconds fastest{0};  ///< what ratios are relative to: fastest_step()

  [[nodiscard]] const prefetch::TaskGraph& graph() const { return workload->training().graph; }
};

/// `machine` with both directions of its link `factor` times as fast. Requires: a factor that
/// leaves at least a kilobyte a second.
[[nodiscard]] prefetch::Machine with_faster_link(prefetch::Machine machine, double factor);

/// A step to compare planners on.
struct ComparedStep {
  std::shared_ptr<const Workload> near;     ///< with its state always near
  std::shared_ptr<const Workload> planned;  ///< the same one, or another of a StateChoice
};

/// The scenario of `step` on a machine to plan for, its times from the machine's model. Budgets and
/// ratios are relative to the resident need and the fastest step of `step.near`.
[[nodiscard]] Scenario make_scenario(std::string net, std::size_t batch, const ComparedStep& step,
                                     const prefetch::Machine& machine, double link_factor = 1);

/// A budget in a scenario. The scenario must outlive it.
struct SweepPoint {
  const Scenario* scenario = nullptr;
  std::size_t position = 0;  ///< of the budget in its list: "p"
  um::Bytes budget;          ///< of the whole run
};

/// `count` equally spaced budgets from the smallest feasible one to the resident need, both
/// included. Requires: at least two.
[[nodiscard]] std::vector<um::Bytes> linear_budgets(const prefetch::NearNeed& need,
                                                    std::size_t count);

/// A plan that a file holds, as a strategy: what makes plans elsewhere can be compared with
/// planners here. It is the same plan under every budget that it keeps.
class PlanFileStrategy final : public prefetch::Planner {
 public:
  explicit PlanFileStrategy(std::string path);

  /// The file's, without its folder.
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view description() const override { return "the plan of a file"; }
  /// Throws: um::Error when the file cannot be read, is of another network, batch or machine, does
  /// not verify, or moves what the problem's memory mode cannot.
  [[nodiscard]] std::variant<prefetch::Plan, prefetch::Infeasible> plan(
      const prefetch::Problem& problem) const override;

 private:
  std::string path_;
  std::string name_;
};

}  // namespace spillway
