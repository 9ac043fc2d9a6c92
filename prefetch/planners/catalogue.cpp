#include "prefetch/planners/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/planners/strategies.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::prefetch {
namespace {

using Strategy = std::function<std::variant<Plan, Infeasible>(const Problem&)>;

// Returns the problem with larger chunks, so that all blocks together have at most kChunks:
// planners' work grows with their number, and a step may have terabytes.
Problem in_few_chunks(Problem problem) {
  constexpr std::uint64_t kChunks = 8'192;
  const BlockSizes block_sizes{problem.graph, problem.page};
  const um::Bytes all = block_sizes.pool(um::Bytes{std::numeric_limits<std::uint64_t>::max()});
  const um::Bytes least = um::round_up(um::Bytes{all.count() / kChunks}, problem.page);
  problem.chunk = std::max(problem.chunk, least);
  return problem;
}

// A strategy with the name for its plans.
class NamedStrategy final : public Planner {
 public:
  NamedStrategy(std::string name, std::string_view description, Strategy strategy,
                const StrategyTraits& traits = {})
      : name_{std::move(name)},
        description_{description},
        strategy_{std::move(strategy)},
        traits_{traits} {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view description() const override { return description_; }
  [[nodiscard]] MicroBatchRule micro_batch_rule() const override { return traits_.rule; }
  [[nodiscard]] bool moves_state() const override { return traits_.moves_state; }
  [[nodiscard]] bool updates_far() const override { return traits_.updates_far; }
  [[nodiscard]] bool chooses_variants() const override { return traits_.chooses_variants; }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override {
    if (problem.graph.tasks.size() > traits_.max_tasks) refuse(problem.graph.tasks.size());
    um::expects(updates_far() || problem.graph.far_updates.empty(),
                "a planner of updates on the far side");
    auto result = strategy_(in_few_chunks(problem));
    auto* const plan = std::get_if<Plan>(&result);
    if (plan == nullptr) return result;
    if (!problem.may_move && moves_anything(*plan)) return need_of(problem, plan->runs);
    plan->planner = name_;
    return result;
  }

 private:
  [[noreturn]] void refuse(std::size_t tasks) const {
    throw TooManyTasks{"planner " + name_ +
                       " takes time that grows at least as the square of a step's tasks, so it "
                       "plans at most " +
                       um::count_of(traits_.max_tasks, "task") + ", and this step has " +
                       std::to_string(tasks) + "; use planner capacity or fractional"};
  }

  std::string name_;
  std::string_view description_;
  Strategy strategy_;
  StrategyTraits traits_;
};

const Planner& find_variant(std::string_view name, std::string_view switches) {
  if (name != "superneurons") {
    throw um::Error{"planner " + std::string{name} +
                    " has no switches: write its name without a colon"};
  }
  static const std::vector<NamedStrategy> all = [] {  // constant data
    std::vector<NamedStrategy> variants;
    for (unsigned parts = 0; parts < 16; ++parts) {
      const SuperNeuronsOptions options{.offload = (parts & 1U) != 0,
                                        .tensor_cache = (parts & 2U) != 0,
                                        .recompute = (parts & 4U) != 0,
                                        .workspace = (parts & 8U) != 0};
      variants.emplace_back(
          superneurons_name(options), kSuperNeuronsParts,
          [=](const Problem& problem) { return plan_superneurons(problem, options); });
    }
    return variants;
  }();
  return *std::ranges::find(all, superneurons_name(parse_superneurons_switches(switches)),
                            &Planner::name);
}

}  // namespace

std::variant<Plan, Infeasible> plan_joint_beside_all(const Problem& problem) {
  static const std::vector<StartingStrategy> others = [] {  // constant data
    std::vector<StartingStrategy> result;
    for (const StrategyRow& row : kStrategies) {
      if (row.strategy.max_tasks > 0) result.push_back(row.strategy);
    }
    return result;
  }();
  return plan_joint(problem, others);
}

const std::vector<std::unique_ptr<const Planner>>& planners() {
  static const std::vector<std::unique_ptr<const Planner>> all = [] {  // constant data
    std::vector<std::unique_ptr<const Planner>> result;
    result.reserve(std::size(kStrategies));
    for (const StrategyRow& row : kStrategies) {
      result.push_back(std::make_unique<NamedStrategy>(row.name, row.description, row.strategy.plan,
                                                       row.traits));
    }
    return result;
  }();
  return all;
}

const Planner& find_planner(std::string_view name) {
  std::string names;
  const std::size_t colon = name.find(':');
  const std::string_view switches = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  name = name.substr(0, colon);
  for (const auto& planner : planners()) {
    if (planner->name() == name)
      return colon == std::string_view::npos ? *planner : find_variant(name, switches);
    names += (names.empty() ? "" : ", ") + std::string{planner->name()};
  }
  throw um::Error{"there is no planner called '" + std::string{name} + "'; there are " + names};
}

}  // namespace spillway::prefetch
