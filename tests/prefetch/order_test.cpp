// Orders of tasks other than the graph's: what they must keep, and plans, predictions and places of
// steps that run in them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/far_update.h"
#include "prefetch/files/trace.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/placement/near_intervals.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/precedence.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/update_order.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/promised_contents.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Returns every task once, in a random order that keeps the graph's Precedence. `drawn` gives
// random numbers.
template <typename Drawn>
std::vector<TaskRun> random_order(const TaskGraph& graph, Drawn drawn) {
  const Precedence precedence{graph};
  const std::size_t loads = count_loads(graph);
  std::vector<bool> has_run(graph.tasks.size(), false);
  const auto have_run = [&](std::span<const TaskId> tasks) {
    for (const TaskId task : tasks) {
      if (!has_run[static_cast<std::size_t>(task)]) return false;
    }
    return true;
  };
  std::vector<TaskRun> runs;
  while (runs.size() < graph.tasks.size()) {
    std::vector<TaskId> ready;
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      if (runs.size() < loads && t != runs.size()) continue;
      const bool is_ready = !has_run[t] && have_run(precedence.sources(TaskId(t))) &&
                            have_run(precedence.hazards(TaskId(t)));
      if (is_ready) ready.push_back(TaskId(t));
    }
    const TaskId next = ready[drawn() % ready.size()];
    has_run[static_cast<std::size_t>(next)] = true;
    runs.push_back({.task = next});
  }
  return runs;
}

// As above, from RapidCheck's numbers.
std::vector<TaskRun> random_order(const TaskGraph& graph) {
  return random_order(graph, [] { return *rc::gen::arbitrary<std::uint32_t>(); });
}

// Returns the names of the tasks that `task` follows: "sources; hazards".
std::string follows(const TaskGraph& graph, const std::string& task) {
  const auto found = std::ranges::find(graph.tasks, task, &Task::name);
  const TaskId id{static_cast<std::uint32_t>(found - graph.tasks.begin())};
  const Precedence precedence{graph};
  const auto names = [&](std::span<const TaskId> tasks) {
    std::string text;
    for (const TaskId each : tasks) text += (text.empty() ? "" : " ") + graph[each].name;
    return text;
  };
  return names(precedence.sources(id)) + "; " + names(precedence.hazards(id));
}

TEST(Precedence, IsThatOfReadersAndWritersOfABlock) {
  TaskGraph graph = toy_graph("a:1 b:1 c:1",
                              "a = make(); b = one(a); c = two(a); a = over(b);"
                              "a = more(a, c)");
  EXPECT_EQ(follows(graph, "make"), "; ");
  EXPECT_EQ(follows(graph, "two"), "make; ");
  EXPECT_EQ(follows(graph, "over"), "one; make one two");
  EXPECT_EQ(follows(graph, "more"), "two over; over");
}

TEST(Precedence, KeepsTheOrderOfRunningStatistics) {
  TaskGraph graph = toy_graph("a:1 b:1 s:1", "a = one(); b = two(); last(a, b)");
  graph.data[2].kind = DataKind::kState;
  graph.tasks[0].updates_once = graph.tasks[1].updates_once = {DataId{2}};
  EXPECT_EQ(follows(graph, "two"), "one; one");
}

TEST(Precedence, LetsTasksFollowWhatTheySayThatTheyDo) {
  TaskGraph graph = toy_graph("a:1 b:1", "a = one(); b = two(); last(a, b)");
  graph.tasks[1].after = {TaskId{0}};
  EXPECT_EQ(follows(graph, "two"), "one; ");
  const std::vector<TaskRun> swapped{{.task = TaskId{1}}, {.task = TaskId{0}}, {.task = TaskId{2}}};
  graph.tasks[0].is_recomputable = true;  // no load
  EXPECT_EQ(check_dataflow(graph, swapped)->reason, "two runs before one, which it must follow");
  graph.tasks[1].after.clear();
  EXPECT_FALSE(check_dataflow(graph, swapped));
}

TEST(Precedence, TakesBlocksInOneMemoryForOne) {
  TaskGraph graph = toy_graph("g:1 p:1 q:1", "g = make(); use(g); p = update(); q = copy(p)");
  for (const std::size_t block : {0U, 1U}) graph.data[block].kind = DataKind::kState;
  graph.data[1].lies_in = DataId{0};
  EXPECT_EQ(follows(graph, "update"), "; make use");
  EXPECT_EQ(follows(graph, "copy"), "update; ");
}

// Each bucket is exchanged when all those before it are.
TEST(Precedence, LetsUpdatesFollowEarlierExchanges) {
  const TaskGraph graph = exchanged(three_layers(), {.first = pages(1), .others = pages(1)});
  const Precedence precedence{graph};
  const auto place = [&](const std::string& name) {
    return TaskId(std::ranges::find(graph.tasks, name, &Task::name) - graph.tasks.begin());
  };
  EXPECT_EQ(std::ranges::count(precedence.hazards(place("u1")), place("b3")), 1);
  EXPECT_EQ(std::ranges::count(precedence.hazards(place("u3")), place("b1")), 0);
}

TEST(Loads, AreTheFirstTasksThatReadNothingAndRunOnce) {
  TaskGraph graph = toy_graph("a:1 b:1 c:1", "a = one(); b = two(); c = three(); last(a, b, c)");
  EXPECT_EQ(count_loads(graph), 3U);
  graph.tasks[1].is_recomputable = true;
  EXPECT_EQ(count_loads(graph), 1U);
}

// True if each task, in this order, finds the contents that the graph's order promises.
bool keeps_promises(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  const PromisedContents promised{graph};
  std::vector<Content> held;
  for (const DataBlock& block : graph.data) {
    held.push_back(block.kind == DataKind::kState ? kInitial : kNothing);
  }
  const auto finds = [&](const std::vector<DataId>& ids, const std::vector<Content>& contents) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (held[static_cast<std::size_t>(ids[i])] != contents[i]) return false;
    }
    return true;
  };
  for (const TaskRun& run : runs) {
    const Task& task = graph[run.task];
    const Promise& promise = promised[run.task];
    if (!finds(task.reads, promise.reads) || !finds(task.updates_once, promise.updates)) {
      return false;
    }
    for_each_written(task, [&](DataId id) {
      held[static_cast<std::size_t>(id)] = PromisedContents::written_by(run.task);
    });
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (graph.data[i].kind == DataKind::kState && held[i] != promised.final(DataId(i)))
      return false;
  }
  return true;
}

// In two thirds of the orders tasks change places afterwards.
RC_GTEST_PROP(AnOrder, IsAcceptedIfEachTaskReadsWhatTheGraphPromises, ()) {
  const TaskGraph graph = random_graph({.max_layers = 6, .in_place_one_in = 2});
  std::vector<TaskRun> runs = random_order(graph);
  RC_ASSERT(!check_dataflow(graph, runs));
  const std::size_t loads = count_loads(graph);
  const auto any = [&] { return *rc::gen::inRange<std::size_t>(loads, runs.size()); };
  const int swaps = *rc::gen::inRange(0, 3);
  for (int i = 0; i < swaps; ++i) std::swap(runs[any()], runs[any()]);
  RC_ASSERT(!check_dataflow(graph, runs) == keeps_promises(graph, runs));
}

// A reader before its writer, or after the next one.
RC_GTEST_PROP(AnOrder, IsRefusedIfItBreaksAHazard, ()) {
  const TaskGraph graph = random_graph({.in_place_one_in = 2});
  const Precedence precedence{graph};
  std::vector<std::pair<TaskId, TaskId>> pairs;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const TaskId before : precedence.sources(TaskId(t))) pairs.emplace_back(before, TaskId(t));
    for (const TaskId before : precedence.hazards(TaskId(t))) {
      const bool reads = std::ranges::any_of(graph[before].reads, [&](DataId id) {
        return std::ranges::count(graph.tasks[t].writes, id) > 0;
      });
      if (reads) pairs.emplace_back(before, TaskId(t));
    }
  }
  RC_PRE(!pairs.empty());
  const auto [before, after] = *rc::gen::elementOf(pairs);
  std::vector<TaskRun> runs = random_order(graph);
  std::swap(*std::ranges::find(runs, before, &TaskRun::task),
            *std::ranges::find(runs, after, &TaskRun::task));
  RC_ASSERT(check_dataflow(graph, runs).has_value());
}

// Returns true if every run of each task comes behind the first runs of those that it follows.
bool follows_said(const TaskGraph& graph, const Plan& plan) {
  std::vector<bool> has_run(graph.tasks.size(), false);
  return std::ranges::all_of(plan.runs, [&](const TaskRun& run) {
    has_run[static_cast<std::size_t>(run.task)] = true;
    return std::ranges::all_of(graph[run.task].after, [&](TaskId before) {
      return has_run[static_cast<std::size_t>(before)];
    });
  });
}

// Tasks say that they follow others at random; every planner keeps that.
RC_GTEST_PROP(AnOrder, IsWhatTasksSayInEveryPlan, ()) {
  TaskGraph graph = random_graph({.max_layers = 8});
  for (std::size_t t = 1; t < graph.tasks.size(); ++t) {
    if (*rc::gen::inRange(0, 3) == 0) {
      graph.tasks[t].after = {TaskId(*rc::gen::inRange<std::size_t>(0, t))};
    }
  }
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  given.may_reorder = true;
  for (const auto& planner : planners()) {
    Problem enough = given;
    const Plan plan = planned_with_more(*planner, enough);
    RC_ASSERT(reason_against(graph, plan).empty());
    RC_ASSERT(follows_said(graph, plan));
  }
  Plan reordered;
  reordered.runs = random_order(graph);
  RC_ASSERT(follows_said(graph, reordered));
}

// The same with exchanges between ranks, for which updates come last, and with far updates.
RC_GTEST_PROP(AnOrder, IsWhatTasksSayInOtherGraphsOfTheStep, ()) {
  TaskGraph graph = random_layers(true);
  const auto any = [&](std::size_t end) { return TaskId(*rc::gen::inRange<std::size_t>(0, end)); };
  const TaskId task = any(graph.tasks.size() - 1);
  const auto last = TaskId(graph.tasks.size() - 1);
  graph.tasks.back().after = {task};
  const std::string name = graph[task].name;
  const auto keeps = [&](const TaskGraph& other) {
    const auto follower = std::ranges::find(other.tasks, graph[last].name, &Task::name);
    return follower != other.tasks.end() && follower->after.size() == 1 &&
           other[follower->after[0]].name == name && &other[follower->after[0]] < &*follower;
  };
  RC_ASSERT(keeps(exchanged(graph, {.first = pages(1), .others = pages(3)})));
  RC_ASSERT(keeps(with_far_updates(graph, far_updatable(graph, kPage))));
}

// Checks a plan's proof, its execution under any timing, and its places in the copy arena.
void expect_sound(const TaskGraph& graph, const Plan& plan, const LinkProfile& link,
                  const Timeline& timeline) {
  const std::string broken = reason_against(graph, plan);
  if (!broken.empty()) RC_FAIL(broken);
  const std::string wrong = check_trace(graph, plan, timeline, link);
  if (!wrong.empty()) RC_FAIL(wrong);
  if (!moves_whole_blocks(plan, graph)) return;
  const PlacedStep placed = place_step(graph, plan, um::Bytes{1ULL << 40U});
  RC_ASSERT(!check_placement(graph, plan, placed.intervals, placed.placement));
}

RC_GTEST_PROP(AnOrder, IsPlannedPredictedAndPlacedAsTheGraphsIs, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  std::vector<TaskRun> runs = random_order(graph);
  given.budget = std::max(given.budget, near_need(graph, BlockSizes{graph, kPage}).smallest);
  const auto planned = OffloadPlanner{given}.plan(std::move(runs));
  RC_ASSERT(planned.has_value());
  const SimulateOptions noise{.noise = 0.9, .seed = *rc::gen::arbitrary<std::uint64_t>()};
  expect_sound(graph, planned->plan, profile.link, simulate(planned->plan, profile, noise));
}

RC_GTEST_PROP(AnOrder, TakesRecomputationsWithTheAlgorithmsOfFirstRuns, ()) {
  const TaskGraph graph = random_graph();
  std::vector<TaskRun> runs = random_order(graph);
  for (TaskRun& run : runs) {
    run.algorithm = static_cast<std::uint32_t>(graph[run.task].algorithms.size()) - 1;
  }
  std::vector<Dropped> dropped;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (*rc::gen::arbitrary<bool>()) dropped.push_back({.data = DataId(i)});
  }
  for (const TaskRun& run : RecomputationInserter{graph}.insert(runs, dropped)) {
    RC_ASSERT(run.algorithm + 1 == graph[run.task].algorithms.size());
  }
}

RC_GTEST_PROP(AnOrder, ExchangesEachBucketWhenItIsComplete, ()) {
  const TaskGraph graph =
      exchanged(random_layers(*rc::gen::arbitrary<bool>()),
                {.first = pages(*rc::gen::inRange<std::uint64_t>(1, 6)), .others = pages(3)});
  Profile profile = random_profile(graph);
  profile.exchanges = exchange_times(
      graph, {.ranks = 4, .bandwidth = profile.link.offload, .shares_link = true}, profile.link);
  const Problem given = random_problem(graph, profile);
  const auto planned = OffloadPlanner{given}.plan(random_order(graph));
  if (!planned) return;  // state that stays near may not fit
  expect_sound(graph, planned->plan, profile.link, simulate(planned->plan, profile));
  Plan late = planned->plan;
  if (late.exchanges.size() < 2) return;
  std::swap(late.exchanges[0], late.exchanges[1]);
  RC_ASSERT(!reason_against(graph, late).empty());
}

// A recorded step of BERT, at half of its need, in four orders.
TEST(AnOrder, OfARecordedStepIsPlannedAsTheStepsOwnIs) {
  const Trace trace = read_trace(JsonFile{SPILLWAY_TRACES "/bert-base-b256-a100.json"});
  const um::Bytes page = choose_page(trace.graph);
  const Profile profile = trace_profile(trace, {});
  const NearNeed need = near_need(trace.graph, BlockSizes{trace.graph, page});
  const Problem given{
      .graph = trace.graph,
      .profile = profile,
      .budget = need.smallest + um::Bytes{(need.resident - need.smallest).count() / 2},
      .page = page,
      .whole_blocks = true};
  std::mt19937 generator{1};
  for (int i = 0; i < 4; ++i) {
    std::vector<TaskRun> runs = random_order(trace.graph, std::ref(generator));
    const auto planned = OffloadPlanner{given}.plan(std::move(runs));
    ASSERT_TRUE(planned.has_value());
    expect_sound(trace.graph, planned->plan, profile.link, simulate(planned->plan, profile));
  }
}

}  // namespace
}  // namespace spillway::prefetch
