// Steps of several micro-batches, layer by layer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "prefetch/planners/joint/layered_order.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Layers with weights of 8 pages, and all else of one page. Gradients are summed in the first one.
TaskGraph micro_batches(std::size_t count, std::size_t layers) {
  TaskGraph graph;
  const auto number = [](std::size_t layer) { return std::to_string(layer); };
  for (std::size_t l = 1; l <= layers; ++l) {
    make_offloadable(graph, graph.add({.name = "w" + number(l), .size = pages(8)}));
  }
  const auto add = [&](Phase phase, const std::string& call) {
    add_tasks(graph, call);
    graph.tasks.back().phase = phase;
  };
  for (std::size_t b = 1; b <= count; ++b) {
    const std::string own = "#" + number(b);
    for (std::size_t l = 0; l <= layers; ++l) {
      for (const char* name : {"y", "d", "g"}) {
        graph.add({.name = name + number(l) + own, .size = pages(1)});
      }
    }
    add(Phase::kForward, "y0" + own + " = load" + own + "()");
    for (std::size_t l = 1; l <= layers; ++l) {
      const std::string w = "w" + number(l);
      add(Phase::kForward, "y" + number(l) + own + " = f" + number(l) + own + "(y" + number(l - 1) +
                               own + ", " + w + ")");
    }
    add(Phase::kBackward,
        "d" + number(layers) + own + " = loss" + own + "(y" + number(layers) + own + ")");
    for (std::size_t l = layers; l >= 1; --l) {
      const std::string g = "g" + number(l) + own;
      add(Phase::kBackward, "d" + number(l - 1) + own + ", " + g + " = b" + number(l) + own + "(y" +
                                number(l - 1) + own + ", d" + number(l) + own + ", w" + number(l) +
                                ")");
      const std::string sum = "g" + number(l) + "#1";
      if (b > 1) {
        add(Phase::kBackward, sum + " = a" + number(l) + own + "(" + sum + ", " + g + ")");
      }
      if (b < count) continue;
      const std::string w = "w" + number(l);
      add(Phase::kUpdate, w + " = u" + number(l) + "(" + w + ", " + sum + ")");
    }
  }
  return graph;
}

std::string names(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  std::string text;
  for (const TaskRun& run : runs) text += (text.empty() ? "" : " ") + graph[run.task].name;
  return text;
}

um::Bytes fetched_weights(const Plan& plan, const TaskGraph& graph) {
  um::Bytes size;
  for (const Move& move : plan.prefetches) {
    if (graph[move.data].kind == DataKind::kState) size += move.size;
  }
  return size;
}

std::size_t count_micro_batches(const TaskGraph& graph) {
  const Profile profile = flat_profile(graph, um::Nanoseconds{100});
  return LayeredOrder{problem(graph, profile, pages(40))}.micro_batches();
}

// A mask that all forward tasks read connects the micro-batches.
TEST(MicroBatchesOfATrace, AreThoseThatTasksSay) {
  TaskGraph graph = micro_batches(2, 2);
  const DataId mask = graph.add(DataBlock{.name = "mask", .size = pages(1)});
  graph.tasks.front().writes.push_back(mask);
  for (Task& task : graph.tasks) {
    if (task.name.starts_with('f')) task.reads.push_back(mask);
  }
  Profile profile{.graph = fingerprint(graph), .durations = {}, .link = {}};
  profile.durations.resize(graph.tasks.size(), {um::Nanoseconds{1}});
  const Problem given{.graph = graph, .profile = profile, .budget = pages(100), .page = kPage};
  EXPECT_EQ(LayeredOrder{given}.micro_batches(), 1U);
  for (Task& task : graph.tasks) {
    if (!is_update(task)) task.micro_batch = task.name.ends_with('2') ? 1 : 0;
  }
  EXPECT_EQ(LayeredOrder{given}.micro_batches(), 2U);
}

TEST(LayeredOrder, IsOfMicroBatchesThatReadTheSameMovableState) {
  EXPECT_EQ(count_micro_batches(micro_batches(4, 3)), 4U);
  EXPECT_EQ(count_micro_batches(micro_batches(1, 3)), 1U);
  EXPECT_EQ(count_micro_batches(chain(4, pages(2))), 1U);
  TaskGraph near = micro_batches(4, 3);
  for (DataBlock& block : near.data) block.is_offloadable = false;
  EXPECT_EQ(count_micro_batches(near), 1U);
}

TEST(LayeredOrder, PassesALayerWithAllMicroBatchesOfAGroup) {
  const TaskGraph graph = micro_batches(2, 2);
  const Profile profile = flat_profile(graph, um::Nanoseconds{100});
  const Problem given = problem(graph, profile, pages(40));
  const LayeredOrder layered{given};
  const std::vector<TaskRun> runs = runs_in_order(graph);
  EXPECT_EQ(names(graph, layered.order(runs, 2, pages(8))),
            "load#1 f1#1 load#2 f1#2 f2#1 loss#1 b2#1 f2#2 loss#2 b2#2 a2#2 u2 b1#1 b1#2 a1#2 u1");
  EXPECT_EQ(layered.order(runs, 1, pages(8)), runs);
  EXPECT_EQ(layered.order(runs, 2, pages(16)), runs);
}

RC_GTEST_PROP(ALayeredOrder, KeepsEveryValue, ()) {
  const TaskGraph graph =
      micro_batches(*rc::gen::inRange<std::size_t>(2, 7), *rc::gen::inRange<std::size_t>(1, 6));
  const Profile profile = flat_profile(graph, um::Nanoseconds{100});
  const Problem given = problem(graph, profile, pages(40));
  const LayeredOrder layered{given};
  const std::vector<TaskRun> runs =
      layered.order(runs_in_order(graph), *rc::gen::inRange<std::size_t>(1, 8),
                    pages(*rc::gen::inRange<std::uint64_t>(0, 40)));
  RC_ASSERT(!check_dataflow(graph, runs));
}

// In the graph's order the weights of at least three of six layers come for each of eight passes;
// a page takes as long as a task. Layer by layer all of them come twice at most.
TEST(Joint, FetchesWeightsOnceForAllMicroBatches) {
  const TaskGraph graph = micro_batches(4, 6);
  const Profile profile = flat_profile(graph, um::Nanoseconds{100}, um::Nanoseconds{100});
  Problem given = problem(graph, profile, pages(30));
  const Plan free = planned("joint", given);
  EXPECT_EQ(reason_against(graph, free), "");
  EXPECT_LE(fetched_weights(free, graph), pages(2 * 6 * 8));
  given.may_reorder = false;
  const Plan in_order = planned("joint", given);
  EXPECT_GE(fetched_weights(in_order, graph), pages(8 * 3 * 8 - 3 * 8));
  EXPECT_LT(2 * simulate(free, profile).makespan(), simulate(in_order, profile).makespan());
}

}  // namespace
}  // namespace spillway::prefetch
