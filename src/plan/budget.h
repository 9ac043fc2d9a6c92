#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {

/// A near-memory budget as a user gives it.
class Budget {
 public:
  /// Reads "512MiB", "40%" (of the resident need), "min", "min+20%" (of the way from the smallest
  /// feasible budget to the resident need) or "auto". Throws: um::Error with what is allowed.
  [[nodiscard]] static Budget parse(std::string_view text);

  /// The budget in bytes. "auto" is what a run that moves nothing needs with any algorithms,
  /// where `available` has room for it, else what is available, less a tenth for everything else.
  /// Never rounds below the smallest feasible budget what was given relative to it.
  [[nodiscard]] um::Bytes resolve(const prefetch::NearNeed& need, um::Bytes available) const;

  /// True when it was given in bytes.
  [[nodiscard]] bool is_absolute() const { return std::holds_alternative<Exact>(amount_); }

 private:
  struct Automatic {};
  struct Exact {
    um::Bytes size;
  };
  struct OfNeed {
    double fraction;
  };
  struct AboveSmallest {
    double fraction;
  };
  using Amount = std::variant<Automatic, Exact, OfNeed, AboveSmallest>;

  explicit Budget(Amount amount) : amount_{amount} {}

  Amount amount_;
};

/// Reads "40%" as 0.4, up to a million percent. Nothing when `text` is no such part.
[[nodiscard]] std::optional<double> parse_percent(std::string_view text);

/// A step as it is planned, wherever it comes from: a network, or another framework's trace.
struct StepToPlan {
  const prefetch::TaskGraph& graph;
  um::Bytes page;           ///< in which its tensors move
  prefetch::NearNeed need;  ///< of the whole run that the step is a part of
  um::Bytes elsewhere;      ///< what the run takes of its budget besides this step

  /// The budget of this step when the whole run has `run_budget`.
  [[nodiscard]] um::Bytes budget(um::Bytes run_budget) const {
    return um::saturating_difference(run_budget, elsewhere);
  }
};

/// No plan of the planner asked for keeps the budget; says what would work.
class BudgetTooSmall final : public um::Error {
 public:
  /// `budget` and `smallest` are of the whole run; `task` is the task of `graph` that needs most.
  BudgetTooSmall(const prefetch::TaskGraph& graph, prefetch::TaskId task, um::Bytes budget,
                 um::Bytes smallest, const std::string& where = "");
  /// The same with another smallest budget, of a run `where`. Requires: the graph is still there.
  [[nodiscard]] BudgetTooSmall with(um::Bytes smallest, const std::string& where = "") const {
    return {*graph_, task_, budget_, smallest, where};
  }
  [[nodiscard]] um::Bytes budget() const noexcept { return budget_; }
  [[nodiscard]] um::Bytes smallest() const noexcept { return smallest_; }

 private:
  const prefetch::TaskGraph* graph_;
  prefetch::TaskId task_;
  um::Bytes budget_;
  um::Bytes smallest_;
};

/// The smallest budget of a whole run that `works`, above the one that `refusal` speaks of: one
/// page less does not. `step` is any of the run's.
[[nodiscard]] um::Bytes smallest_run_budget(const StepToPlan& step, const BudgetTooSmall& refusal,
                                            const std::function<bool(um::Bytes)>& works);

/// Says that no plan of any planner can keep `budget`, which is the whole run's; nothing where one
/// can.
[[nodiscard]] std::optional<BudgetTooSmall> too_small(const StepToPlan& step, um::Bytes budget);

}  // namespace spillway
