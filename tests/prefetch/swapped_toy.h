#pragma once

#include "prefetch/plan.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch::testing {

/// a (two pages) is made by run 0 and used by run 2, away in between; b (two pages), made by run 1,
/// lives in run 1 alone, whose workspace takes one page.
struct SwappedToy {
  SwappedToy() {
    graph.tasks[1].algorithms = {{.workspace = pages(1)}};
    plan = plain_plan(graph, pages(3));
    plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(2), .after = {.runs = 2, .offloads = 1}}};
    plan.runs[1].after = {.runs = 1, .offloads = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 1};
  }
  TaskGraph graph = toy_graph("a:2 b:2", "a = make a(); b = make b(); use a(a)");
  DataId a{0};
  DataId b{1};
  Plan plan;
};

/// The same with c (one page), which is made by run 0, too, leaves before a, and comes back for run
/// 1 when a has left. Run 1 waits for c alone, and so, by way of it, for a's room.
struct SwappedByWayOfAnother : SwappedToy {
  SwappedByWayOfAnother() {
    graph.tasks[0].writes.push_back(c);
    graph.tasks[1].reads.push_back(c);
    plan.graph = fingerprint(graph);
    plan.budget = pages(4);
    plan.offloads.insert(plan.offloads.begin(),
                         {.data = c, .size = pages(1), .after = {.runs = 1}});
    plan.prefetches = {{.data = c, .size = pages(1), .after = {.runs = 1, .offloads = 2}},
                       {.data = a, .size = pages(2), .after = {.runs = 2, .offloads = 2}}};
    plan.runs[1].after = {.runs = 1, .offloads = 0, .prefetches = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 0, .prefetches = 2};
  }
  DataId c = graph.add(DataBlock{.name = "c", .size = pages(1)});
};

}  // namespace spillway::prefetch::testing
