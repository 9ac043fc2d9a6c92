#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/resident_runs.h"
#include "prefetch/planners/chain/chain.h"
#include "prefetch/planners/chain/chain_planners.h"
#include "prefetch/planners/chain/rotor_table.h"
#include "prefetch/verify/dataflow.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

constexpr std::size_t kStages = 100;
constexpr std::size_t kUnits = 256;

// The sequences of runs that the table's memories give, and what they really need.
class Sequences {
 public:
  explicit Sequences(const Problem& problem)
      : problem_{problem},
        in_order_{runs_in_order(problem.graph)},
        chain_{linearise(problem.graph, problem.profile, BlockSizes{problem.graph, problem.page},
                         in_order_, kStages)},
        // The analyzer does not see RotorTable's constructor.
        // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject)
        table_{chain_, unit(), kUnits + chain_.stages.size()} {}

  // The largest memory whose sequence fits the budget, as far as bisection tells; else any that
  // does.
  [[nodiscard]] std::optional<std::vector<TaskRun>> find() {
    if (fits(in_order_)) return in_order_;
    std::optional<std::vector<TaskRun>> best;
    std::size_t low = 0;
    for (std::size_t high = memories(); low < high;) {
      const std::size_t middle = low + (high - low) / 2;
      auto runs = at(middle);
      if (runs && !fits(*runs)) {
        high = middle;
        continue;
      }
      low = middle + 1;
      if (runs) best = std::move(runs);
    }
    for (std::size_t m = memories(); !best && m-- > 0;) {
      auto runs = at(m);
      if (runs && fits(*runs)) best = std::move(runs);
    }
    return best;
  }

  [[nodiscard]] Infeasible smallest_budget() const {
    Infeasible min = need_of(problem_, in_order_);
    for (std::size_t m = 0; m < memories(); ++m) {
      const auto runs = at(m);
      if (!runs) continue;
      const Infeasible need = need_of(problem_, *runs);
      if (need.smallest_budget < min.smallest_budget) min = need;
    }
    return min;
  }

 private:
  [[nodiscard]] Bytes unit() const {
    const BlockSizes block_sizes{problem_.graph, problem_.page};
    const Bytes whole = need_of(problem_, in_order_).smallest_budget - block_sizes.pinned();
    return Bytes{std::max<std::uint64_t>(1, (whole.count() + kUnits - 1) / kUnits)};
  }
  [[nodiscard]] std::size_t memories() const { return kUnits + chain_.stages.size() + 1; }

  [[nodiscard]] bool fits(const std::vector<TaskRun>& runs) const {
    return need_of(problem_, runs).smallest_budget <= problem_.budget;
  }

  // Nothing where the memory is too small, or where a stage cannot run again after all.
  [[nodiscard]] std::optional<std::vector<TaskRun>> at(std::size_t memory) const {
    if (!problem_.may_recompute || !table_.makespan(memory)) return std::nullopt;
    std::vector<TaskRun> runs;
    std::vector<bool> ran(chain_.stages.size(), false);
    for (const RotorOperation& operation : table_.sequence(memory)) {
      const ChainStage& stage = chain_.stages[operation.stage];
      const bool is_backward = operation.kind == RotorOperation::Kind::kBackward;
      const TaskRange range = is_backward ? stage.backward : stage.forward;
      for (Position p = range.begin; p < range.end; ++p) {
        runs.push_back(
            {.task = TaskId(p), .is_recomputation = !is_backward && ran[operation.stage]});
      }
      ran[operation.stage] = true;
    }
    if (check_dataflow(problem_.graph, runs)) return std::nullopt;
    return runs;
  }

  const Problem& problem_;
  std::vector<TaskRun> in_order_;
  Chain chain_;
  RotorTable table_;
};

}  // namespace

std::variant<Plan, Infeasible> plan_rotor(const Problem& problem) {
  Sequences sequences{problem};
  auto runs = sequences.find();
  if (!runs) return sequences.smallest_budget();
  Plan plan = plan_without_moves(problem, *std::move(runs));
  return plan;
}

}  // namespace spillway::prefetch
