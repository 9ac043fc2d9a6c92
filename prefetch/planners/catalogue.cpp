#include "prefetch/planners/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/planners/chain/dynprog.h"
#include "prefetch/planners/chain/rotor.h"
#include "prefetch/planners/joint/joint_search.h"
#include "prefetch/planners/modnn/modnn.h"
#include "prefetch/planners/strategies.h"
#include "prefetch/planners/superneurons.h"
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

constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

// Properties of a strategy.
struct Traits {
  MicroBatchRule rule = MicroBatchRule::kSearch;
  bool moves_state = false;
  bool updates_far = false;
  bool chooses_variants = false;
  std::size_t max_tasks = kAnyNumber;  // limit for work that grows at least with the square
};

// A strategy with the name for its plans.
class NamedStrategy final : public Planner {
 public:
  NamedStrategy(std::string name, std::string_view description, Strategy strategy,
                const Traits& traits = {})
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
  Traits traits_;
};

constexpr const char* kSuperNeurons =
    "offloads convolutions' outputs, recomputes cheap layers (SuperNeurons); "
    "superneurons:no-offload,no-cache,no-recompute,no-workspace switches parts off";

// The largest steps, in tasks, for which joint also asks a strategy: below them it takes a fraction
// of joint's own time. Strategies that try many plans take longest.
constexpr std::size_t kTriesMany = 1000;
constexpr std::size_t kFollowsARule = 10000;

struct Row {
  const char* name;
  const char* description;
  StartingStrategy strategy;
  Traits traits{};
};

// AutoSwap scores all blocks again after each choice. moDNN scans all of near memory before each
// task, once per task of look-ahead.
constexpr std::size_t kMaxAutoswapTasks = 15'000;
constexpr std::size_t kMaxModnnTasks = 5'000;

std::variant<Plan, Infeasible> plan_joint_beside_all(const Problem& problem);

constexpr std::array kRows{
    Row{"autoswap",
        "swaps the blocks with the best weighted score; searches for the weights (AutoSwap)",
        {.plan = plan_autoswap, .max_tasks = kTriesMany},
        {.max_tasks = kMaxAutoswapTasks}},
    Row{"capacity",
        "offloads whole blocks until the rest fits; prefetches as early as there is room "
        "(UM-Chainer)",
        {.plan = plan_capacity, .max_tasks = kFollowsARule},
        {.moves_state = true, .updates_far = true}},
    Row{"dynprog",
        "offloads the activations that a dynamic program chooses (Beaumont et al., section 5)",
        {.plan = plan_dynprog, .max_tasks = kTriesMany}},
    Row{"fractional",
        "offloads only the parts of blocks that do not fit, the longest unused first "
        "(Beaumont et al., section 4)",
        {.plan = plan_fractional, .max_tasks = kTriesMany},
        {.moves_state = true, .updates_far = true}},
    Row{"greedy",
        "offloads the first activations, as many as do not fit (Beaumont et al., section 4)",
        {.plan = plan_greedy, .max_tasks = kFollowsARule}},
    Row{"ibm-ooc",
        "offloads after every layer's forward pass, prefetches one layer ahead (IBM's Chainer)",
        {.plan = plan_ibm_ooc, .max_tasks = kFollowsARule}},
    Row{"joint",
        "offloads parts of blocks, recomputes, and picks convolution algorithms, all "
        "chosen together (Spillway's own)",
        {.plan = plan_joint_beside_all},
        {.moves_state = true, .updates_far = true, .chooses_variants = true}},
    Row{"largest-first",
        "offloads all activations, then keeps the largest blocks that fit",
        {.plan = plan_largest_first, .max_tasks = kFollowsARule}},
    Row{"modnn",
        "executes the step in estimated time: offloads what delays least, prefetches "
        "just in time (moDNN, Algorithm 1)",
        {.plan = plan_modnn, .max_tasks = kTriesMany},
        {.rule = MicroBatchRule::kWorkingSet, .max_tasks = kMaxModnnTasks}},
    Row{"on-demand",
        "no foresight: page faults alone (managed), or least-recently-used swapping when a "
        "task needs a block (copy)",
        {.plan = plan_on_demand},
        {.moves_state = true}},
    Row{"recompute",
        "moves nothing; drops activations that are cheap to recompute until the rest fits",
        {.plan = plan_recompute, .recomputes = true, .max_tasks = kTriesMany}},
    Row{"resident",
        "moves nothing; needs a budget that holds the whole step",
        {.plan = plan_resident, .max_tasks = kFollowsARule}},
    Row{"rotor",
        "moves nothing; recomputes, optimally for a chain (rotor, RR-9302)",
        {.plan = plan_rotor, .recomputes = true, .max_tasks = kTriesMany}},
    Row{"superneurons",
        kSuperNeurons,
        {.plan = [](const Problem& problem) { return plan_superneurons(problem); },
         .recomputes = true,
         .max_tasks = kFollowsARule}},
    Row{"tflms",
        "offloads the first n activations, prefetches d layers ahead; tries n and d (TFLMS)",
        {.plan = plan_tflms, .max_tasks = kTriesMany}},
    Row{"vdnn-all",
        "offloads the input of every layer, layer by layer (vDNN)",
        {.plan = plan_vdnn_all, .max_tasks = kFollowsARule}},
    Row{"vdnn-conv",
        "offloads the inputs of convolutions, layer by layer (vDNN)",
        {.plan = plan_vdnn_conv, .max_tasks = kFollowsARule}},
    Row{"vdnn-dyn",
        "offloads nothing, convolutions' inputs or all inputs, as the budget demands (vDNN)",
        {.plan = plan_vdnn_dyn, .max_tasks = kFollowsARule}},
    // moDNN section V-B does not say which of vDNN's policies it extends: here the dynamic one.
    Row{"vdnn+",
        "vdnn-dyn in micro-batches by working set (moDNN, section V-B); see --micro-batch-size",
        {.plan = plan_vdnn_dyn, .max_tasks = kFollowsARule},
        {.rule = MicroBatchRule::kWorkingSet}},
};

// Joint can adopt the plans of all rows except page faults.
std::variant<Plan, Infeasible> plan_joint_beside_all(const Problem& problem) {
  static const std::vector<StartingStrategy> others = [] {  // constant data
    std::vector<StartingStrategy> result;
    for (const Row& row : kRows) {
      if (row.strategy.max_tasks > 0) result.push_back(row.strategy);
    }
    return result;
  }();
  return plan_joint(problem, others);
}

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
      variants.emplace_back(superneurons_name(options), kSuperNeurons, [=](const Problem& problem) {
        return plan_superneurons(problem, options);
      });
    }
    return variants;
  }();
  return *std::ranges::find(all, superneurons_name(parse_superneurons_switches(switches)),
                            &Planner::name);
}

}  // namespace

const std::vector<std::unique_ptr<const Planner>>& planners() {
  static const std::vector<std::unique_ptr<const Planner>> all = [] {  // constant data
    std::vector<std::unique_ptr<const Planner>> result;
    result.reserve(std::size(kRows));
    for (const Row& row : kRows) {
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
