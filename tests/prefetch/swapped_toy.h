#pragma once

#include "prefetch/plan.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// a (two pages) is made by run 0 and used by run 2, away in between; b (two pages), made by run 1,
/// lives in run 1 alone, whose workspace takes one page.
struct SwappedToy {
  SwappedToy() {
    graph.add(Task{.name = "make a", .writes = {a}});
    graph.add(Task{.name = "make b", .writes = {b}, .algorithms = {{.workspace = pages(1)}}});
    graph.add(Task{.name = "use a", .reads = {a}, .writes = {}});
    plan = {.graph = fingerprint(graph), .budget = pages(3), .page = kPage};
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(2), .after = {.runs = 2, .offloads = 1}}};
    plan.runs[1].after = {.runs = 1, .offloads = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 1};
  }
  TaskGraph graph;
  DataId a = graph.add(DataBlock{.name = "a", .size = pages(2)});
  DataId b = graph.add(DataBlock{.name = "b", .size = pages(2)});
  Plan plan;
};

}  // namespace spillway::prefetch::testing
