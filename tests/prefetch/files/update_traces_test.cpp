// Small traces in which update tasks write weights between backward tasks, as found by a random
// search: planners once gave them plans that recompute with weights that had changed since. In
// "in_place" a forward task changes a tensor that another has read.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "prefetch/bounds/bounds.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/trace.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// File, planner, whether weights are offloadable.
class UpdateTraces : public ::testing::TestWithParam<std::tuple<std::string, std::string, bool>> {
 protected:
  [[nodiscard]] static Trace trace() {
    const auto& [file, planner, offload_weights] = GetParam();
    return read_trace(JsonFile{std::string{SPILLWAY_TRACES "/updates/"} + file + ".json"},
                      {.offload_weights = offload_weights});
  }
  // The least budget, a third more than that, and two thirds of what keeps everything near.
  [[nodiscard]] static std::vector<um::Bytes> budgets(const NearNeed& need) {
    return {need.smallest, um::Bytes{need.smallest.count() / 3 * 4},
            std::max(need.smallest, um::Bytes{need.resident.count() / 3 * 2})};
  }
};

void expect_sound(const Problem& given, const Plan& plan) {
  ASSERT_EQ(reason_against(given.graph, plan), "");
  const Timeline timeline = simulate(plan, given.profile);
  EXPECT_EQ(check_trace(given.graph, plan, timeline, given.profile.link), "");
  if (plan.budget != given.budget) return;
  const Bounds bounds = lower_bounds(given);
  EXPECT_LE(bounds.mixed, bounds.mixed_transition);
  EXPECT_LE(bounds.mixed_transition, timeline.makespan());
}

TEST_P(UpdateTraces, ArePlannedSoundly) {
  const Trace given = trace();
  const Profile profile = trace_profile(given, find_machine("k40m").link);
  const um::Bytes page = choose_page(given.graph);
  const Planner& planner = find_planner(std::get<1>(GetParam()));
  for (const um::Bytes budget : budgets(near_need(given.graph, BlockSizes{given.graph, page}))) {
    Problem problem{.graph = given.graph,
                    .profile = profile,
                    .budget = budget,
                    .page = page,
                    .chunk = chunk_for(profile.link),
                    .may_recompute = true};
    const Plan plan = planned_with_more(planner, problem);
    expect_sound(problem, plan);
  }
}

// A writes x, B reads x to make v, C, which takes 9 s, updates x in place, D reads x, E reads v. To
// make v again takes A and B, not C: A, B, C, D, T, U, A again, B again, E computes for 9.008 s.
TEST(InPlaceTrace, HasBoundsThatCountOnlyWhatABlockIsMadeFrom) {
  const Trace trace = read_trace(JsonFile{SPILLWAY_TRACES "/updates/in_place.json"});
  const Profile profile = trace_profile(trace, find_machine("k40m").link);
  const um::Bytes page = choose_page(trace.graph);
  const Problem given{.graph = trace.graph,
                      .profile = profile,
                      .budget = near_need(trace.graph, BlockSizes{trace.graph, page}).smallest,
                      .page = page,
                      .chunk = chunk_for(profile.link),
                      .may_recompute = true};
  std::vector<TaskRun> runs = runs_in_order(trace.graph);
  for (const TaskId again : {TaskId{0}, TaskId{1}}) {
    runs.insert(runs.end() - 1, {.task = again, .is_recomputation = true});
  }
  ASSERT_FALSE(check_dataflow(trace.graph, runs));
  const auto evaluated = OffloadPlanner{given}.plan(runs);
  ASSERT_TRUE(evaluated);
  EXPECT_EQ(evaluated->makespan, std::chrono::milliseconds{9008});
  EXPECT_LE(lower_bounds(given).mixed, evaluated->makespan);
  EXPECT_LE(lower_bounds(given).mixed_transition, evaluated->makespan);
}

std::string name_of(const ::testing::TestParamInfo<UpdateTraces::ParamType>& info) {
  const auto& [file, planner, offload_weights] = info.param;
  return file + "_" + planner + (offload_weights ? "_offloads_weights" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Files, UpdateTraces,
    ::testing::Combine(::testing::Values("1034", "1077", "1083", "5025", "in_place"),
                       ::testing::Values("joint", "recompute"), ::testing::Bool()),
    name_of);

}  // namespace
}  // namespace spillway::prefetch
