#include "prefetch/planners/chain/rotor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/planners/chain/chain.h"
#include "prefetch/verify/dataflow.h"
#include "um/error.h"

namespace spillway::prefetch {

RotorTable::RotorTable(const Chain& chain, um::Bytes unit, std::size_t slots) : slots_{slots + 1} {
  um::expects(!chain.stages.empty(), "a chain has a stage at least");
  const auto units = [&](um::Bytes size) -> std::size_t { return um::round_up(size, unit) / unit; };
  std::size_t input = units(chain.input);
  std::size_t input_gradient = units(chain.input_gradient);
  for (const ChainStage& stage : chain.stages) {
    stages_.push_back({.forward_time = stage.forward_time.count(),
                       .backward_time = stage.backward_time.count(),
                       .input = input,
                       .output = units(stage.output),
                       .kept = units(stage.kept),
                       .gradient = units(stage.gradient),
                       .input_gradient = input_gradient,
                       .forward_extra = units(stage.forward_extra),
                       .passing_extra = units(stage.passing_extra),
                       .backward_extra = units(stage.backward_extra),
                       .is_recomputable = stage.is_recomputable});
    input = stages_.back().output;
    input_gradient = stages_.back().gradient;
  }
  cells_.resize(stages_.size() * stages_.size() * slots_);
  for (std::size_t length = 1; length <= stages_.size(); ++length) {
    for (std::size_t s = 0; s + length <= stages_.size(); ++s) fill(s, s + length - 1);
  }
}

void RotorTable::fill(std::size_t s, std::size_t t) {
  try_saving(s, t);
  if (t > s) try_splits(s, t);
}

void RotorTable::try_saving(std::size_t s, std::size_t t) {
  const Stage& stage = stages_[s];
  const std::size_t min =
      stage.kept + std::max(stages_[t].gradient + stage.forward_extra,
                            stage.gradient + stage.input_gradient + stage.backward_extra);
  for (std::size_t m = min; m < slots_; ++m) {
    const std::int64_t between = t == s ? 0 : cells_[row(s + 1, t) + m - stage.kept].time;
    const std::int64_t time = stage.forward_time + between + stage.backward_time;
    if (between < kNever) cells_[row(s, t) + m] = {.time = time, .split = std::uint32_t(s)};
  }
}

void RotorTable::try_splits(std::size_t s, std::size_t t) {
  std::size_t min = 0;  // for running s ... r-1 forward
  std::int64_t passing_time = 0;
  for (std::size_t r = s + 1; r <= t; ++r) {
    const Stage& last = stages_[r - 1];
    if (!last.is_recomputable) return;
    const std::size_t input = r - 1 == s ? 0 : last.input;
    min = std::max(min, stages_[t].gradient + input + last.output + last.passing_extra);
    passing_time += last.forward_time;
    for (std::size_t m = std::max(min, last.output); m < slots_; ++m) {
      const std::int64_t time =
          passing_time + cells_[row(r, t) + m - last.output].time + cells_[row(s, r - 1) + m].time;
      Cell& cell = cells_[row(s, t) + m];
      if (time < cell.time) cell = {.time = time, .split = std::uint32_t(r)};
    }
  }
}

std::optional<um::Nanoseconds> RotorTable::makespan(std::size_t slots) const {
  if (slots < stages_.front().input) return std::nullopt;
  const std::size_t m = slots - stages_.front().input;
  um::expects(m < slots_, "a memory that the table has");
  const std::int64_t time = cells_[row(0, stages_.size() - 1) + m].time;
  if (time >= kNever) return std::nullopt;
  return um::Nanoseconds{time};
}

std::vector<RotorOperation> RotorTable::sequence(std::size_t slots) const {
  um::expects(makespan(slots).has_value(), "a memory that suffices");
  std::vector<RotorOperation> operations;
  append(0, stages_.size() - 1, slots - stages_.front().input, operations);
  return operations;
}

void RotorTable::append(std::size_t s, std::size_t t, std::size_t m,
                        std::vector<RotorOperation>& to) const {
  using Kind = RotorOperation::Kind;
  const std::size_t split = cells_[row(s, t) + m].split;
  if (split == s) {
    to.push_back({.kind = Kind::kForwardAll, .stage = s});
    if (t > s) append(s + 1, t, m - stages_[s].kept, to);
    to.push_back({.kind = Kind::kBackward, .stage = s});
    return;
  }
  to.push_back({.kind = Kind::kForwardKeeping, .stage = s});
  for (std::size_t j = s + 1; j < split; ++j) {
    to.push_back({.kind = Kind::kForwardPassing, .stage = j});
  }
  append(split, t, m - stages_[split - 1].output, to);
  append(s, split - 1, m, to);
}

namespace {

using um::Bytes;

constexpr std::size_t kStages = 100;
constexpr std::size_t kUnits = 256;

// The sequences of runs for the table's memories, and their real needs.
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

  // Returns the sequence of the largest memory that fits the budget, as far as bisection finds it;
  // otherwise any that fits.
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

  // Returns nullopt if the memory is too small, or a stage cannot run again after all.
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
    if (check_dataflow(problem_.graph, runs, problem_.page)) return std::nullopt;
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
