#include "prefetch/task_graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

TEST(Fingerprint, DiffersWithEverythingThatAPlanDependsOn) {
  const TaskGraph graph = chain(2, pages(2));
  const std::vector<std::function<void(TaskGraph&)>> changes{
      [](TaskGraph& other) { other.data[1].name = "z"; },
      [](TaskGraph& other) { other.data[1].size = pages(3); },
      [](TaskGraph& other) { other.data[1].kind = DataKind::kState; },
      [](TaskGraph& other) { other.add(DataBlock{}); },
      [](TaskGraph& other) { other.tasks[1].name = "z"; },
      [](TaskGraph& other) { other.tasks[1].phase = Phase::kUpdate; },
      [](TaskGraph& other) { other.tasks[1].is_recomputable = false; },
      [](TaskGraph& other) { other.tasks[1].reads.clear(); },
      [](TaskGraph& other) { std::swap(other.tasks[1].reads, other.tasks[1].writes); },
      [](TaskGraph& other) { other.tasks[1].updates_once = other.tasks[1].writes; },
      [](TaskGraph& other) { other.tasks[1].algorithms[0].name = "z"; },
      [](TaskGraph& other) { other.tasks[1].algorithms[0].workspace = 1_B; },
      [](TaskGraph& other) { other.tasks[1].algorithms.push_back({}); },
      [](TaskGraph& other) { other.add(Task{}); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    TaskGraph other = graph;
    changes[i](other);
    EXPECT_NE(fingerprint(other), fingerprint(graph)) << "change " << i;
  }
}

TEST(Fingerprint, DoesNotDependOnCosts) {
  const TaskGraph graph = chain(2, pages(2));
  TaskGraph other = graph;
  other.tasks[1].flops = 7;
  other.tasks[1].traffic = 7_B;
  EXPECT_EQ(fingerprint(other), fingerprint(graph));
}

}  // namespace
}  // namespace spillway::prefetch
