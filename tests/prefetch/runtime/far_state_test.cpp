// Steps with weights that may be far between steps: the same bytes in every memory, also if another
// step owns the weights in between, and if they are read and written between steps.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/home_search.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/moves/timed_schedule.h"
#include "prefetch/planner.h"
#include "tests/prefetch/runtime/step_equivalence.h"
#include "um/host/managed/uffd_move.h"

namespace spillway::prefetch::testing {
namespace {

// Draws for every block of state a part that is far between steps, and a part that is near with a
// far copy. Whole blocks are completely far, near with a far copy, or near.
CoverOptions draw_homes(const Problem& problem, const BlockSizes& block_sizes) {
  CoverOptions options{.chunk = problem.chunk, .whole_blocks = problem.whole_blocks, .homes = {}};
  options.free_first = *rc::gen::arbitrary<bool>();
  for (std::size_t i = 0; i < problem.graph.data.size(); ++i) {
    HomeBytes& home = options.homes.emplace_back();
    const DataId data{static_cast<std::uint32_t>(i)};
    if (!problem.graph[data].is_offloadable) continue;
    const std::uint64_t size = block_sizes.size(data) / problem.page;
    std::uint64_t far = *rc::gen::inRange<std::uint64_t>(0, size + 1);
    std::uint64_t copied = *rc::gen::inRange<std::uint64_t>(0, size - far + 1);
    if (problem.whole_blocks) {
      copied = copied > 0 ? size : 0;
      far = copied == 0 && far > 0 ? size : 0;
    }
    const std::uint64_t page = problem.page.count();
    home = {.far = um::Bytes{far * page}, .copied = um::Bytes{copied * page}};
  }
  return options;
}

// Returns a plan with the runs in order and drawn homes of state, with moves scheduled in time or
// by runs; nullopt if it does not fit.
std::optional<Plan> plan_with_drawn_homes(const Problem& problem) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const um::Bytes pool = block_sizes.pool(problem.budget);
  const CoverOptions options = draw_homes(problem, block_sizes);
  Plan plan = empty_plan(problem, runs_in_order(problem.graph));
  const std::vector<Life> lives = find_lives(problem.graph, plan.runs);
  const std::vector<um::Bytes> live = demand(problem.graph, block_sizes, plan.runs, lives);
  std::vector<FarInterval> away = far_intervals_from_start(block_sizes, lives, options);
  const auto chosen = cover(block_sizes, without(live, away), lives, pool, options);
  if (!chosen) return std::nullopt;
  away.insert(away.end(), chosen->begin(), chosen->end());
  const std::vector<FarInterval> copies = copies_from_start(lives, options);
  const std::vector<double> before(plan.runs.size() + 1);  // unknown durations
  if (*rc::gen::arbitrary<bool>()) {
    Room room{without(live, away)};
    std::vector<FarInterval> needed = needed_of(away, pool, room);
    for (FarInterval renewed : renewals(needed, lives, before, 1, options)) {
      renewed.needed = renewed.next;
      needed.push_back(renewed);
    }
    const MoveOrder order{.is_eager = *rc::gen::arbitrary<bool>(),
                          .prefetches_first = *rc::gen::arbitrary<bool>()};
    const NearDemand needs{.runs = live, .at_end = demand_at_end(block_sizes, lives), .pool = pool};
    schedule_in_time(needed, needs, problem.profile, order, plan, copies);
  } else {
    std::vector<Swap> swaps = return_early(away, live, pool);
    const std::vector<FarInterval> kept{swaps.begin(), swaps.end()};
    const std::vector<Swap> renewed = renewals(kept, lives, before, 1, options);
    swaps.insert(swaps.end(), renewed.begin(), renewed.end());
    add_moves(std::move(swaps), problem.profile.link, plan, copies);
  }
  return plan;
}

constexpr const char* kDrawnHomes = "drawn homes";  // instead of a planner
const Execution::Order kTwoStepsByTurns{0, 0, 0, 1, 1, 0, 1};

// Returns the evaluation step of `training`: its forward tasks. It does not use some weights, and
// changes others.
TaskGraph evaluation_of(const TaskGraph& training) {
  TaskGraph graph = training;
  std::erase_if(graph.tasks, [](const Task& task) { return task.phase != Phase::kForward; });
  for (Task& task : graph.tasks) task.updates_once.clear();
  return graph;
}

// A random training step and its evaluation, with plans for the same budget.
class TwoSteps {
 public:
  TwoSteps(const std::string& planner, bool whole_blocks)
      : graphs_{random_step(), {}}, profiles_{random_profile(graphs_[0]), {}} {
    graphs_[1] = evaluation_of(graphs_[0]);
    profiles_[1] = random_profile(graphs_[1]);
    Problem problem = random_step_problem(graphs_[0], profiles_[0]);
    problem.whole_blocks = whole_blocks;
    std::optional<Plan> drawn;
    if (planner == kDrawnHomes) drawn = plan_with_drawn_homes(problem);
    plans_[0] = drawn ? *drawn
                      : planned_with_more(
                            find_planner(planner == kDrawnHomes ? "capacity" : planner), problem);
    Problem evaluation{.graph = graphs_[1],
                       .profile = profiles_[1],
                       .budget = problem.budget,
                       .page = kPage,
                       .chunk = problem.chunk,
                       .whole_blocks = whole_blocks};
    plans_[1] = verified_plan(evaluation, "capacity");
    RC_ASSERT(reason_against(graphs_[0], plans_[0]) == "");
    tag_home(StateHome{graphs_[0], BlockSizes{graphs_[0], kPage}, plans_[0]});
  }

  [[nodiscard]] Execution execution() const {
    return Execution{std::vector<StepCase>{{graphs_[0], plans_[0]}, {graphs_[1], plans_[1]}}};
  }
  [[nodiscard]] ToyResult wanted() const {
    std::vector<const TaskGraph*> steps;
    for (const std::size_t i : kTwoStepsByTurns) steps.push_back(&graphs_[i]);
    return run_plainly(steps);
  }
  [[nodiscard]] um::Bytes peak() const {
    return std::max(peak_of(graphs_[0], plans_[0]), peak_of(graphs_[1], plans_[1]));
  }
  [[nodiscard]] um::Bytes budget() const { return plans_[0].budget; }

 private:
  // Classifies plans by the homes of state.
  void tag_home(const StateHome& home) const {
    bool is_copied = false;
    for (std::size_t i = 0; i < graphs_[0].data.size(); ++i) {
      is_copied = is_copied || std::ranges::count(home.copied_pages(DataId(i)), true) > 0;
    }
    const std::string far = home.far() > um::Bytes{} ? "far" : "near";
    RC_TAG(is_copied ? far + ", and near with a far copy" : far);
  }

  std::array<TaskGraph, 2> graphs_;
  std::array<Profile, 2> profiles_;
  std::array<Plan, 2> plans_;
};

class FarState : public ::testing::TestWithParam<const char*> {};

void check_managed(const std::string& planner, um::Paging paging) {
  const TwoSteps steps{planner, false};
  const Executed executed = steps.execution().managed(kTwoStepsByTurns, paging, true);
  RC_ASSERT(executed.result == steps.wanted());
  RC_ASSERT(executed.counters.faults == 0U);
  RC_ASSERT(executed.counters.evictions == 0U);
  RC_ASSERT(executed.counters.refused_hints == 0U);
  RC_ASSERT(executed.peak <= steps.peak());
}

RC_GTEST_PROP(FarStateOfResidentSteps, IsTheSame, ()) {
  const TwoSteps steps{"on-demand", false};
  RC_ASSERT(steps.execution().resident(kTwoStepsByTurns).result == steps.wanted());
}

TEST_P(FarState, IsTheSameOnMemfd) {
  EXPECT_TRUE(rc::check([] { check_managed(GetParam(), um::Paging::kMemfdSegv); }));
}

TEST_P(FarState, IsTheSameOnUffd) {
  if (const auto reason = um::probe_uffd_move()) GTEST_SKIP() << *reason;
  EXPECT_TRUE(rc::check([] { check_managed(GetParam(), um::Paging::kUffdMove); }));
}

void check_copied(const std::string& planner, const std::string& far_file) {
  const TwoSteps steps{planner, true};
  const Executed executed = steps.execution().copy(kTwoStepsByTurns, far_file);
  RC_ASSERT(executed.result == steps.wanted());
  RC_ASSERT(executed.peak <= steps.peak());
  RC_TAG(executed.has_fixed_places ? "fixed" : "compacted");
}

TEST_P(FarState, IsTheSameCopied) {
  EXPECT_TRUE(rc::check([] { check_copied(GetParam(), ""); }));
}

TEST_P(FarState, IsTheSameCopiedToAFile) {
  const std::string folder = std::filesystem::temp_directory_path();
  EXPECT_TRUE(rc::check([&] { check_copied(GetParam(), folder); }));
}

TEST_P(FarState, IsTheSameGivenAhead) {
  EXPECT_TRUE(rc::check([] {
    const TwoSteps steps{GetParam(), true};
    const std::optional<Executed> executed = steps.execution().given(kTwoStepsByTurns);
    RC_TAG(executed ? "given" : "compacted");
    if (!executed) return;
    RC_ASSERT(executed->result == steps.wanted());
    RC_ASSERT(executed->peak <= steps.budget());
  }));
}

INSTANTIATE_TEST_SUITE_P(Planners, FarState,
                         ::testing::Values("joint", "capacity", "fractional", "modnn",
                                           kDrawnHomes));

}  // namespace
}  // namespace spillway::prefetch::testing
