#pragma once

#include "prefetch/plan.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// Run 0 makes a (two pages) and run 2 uses it; it is away in between. Run 1 makes b (two pages),
/// which lives only in run 1; the run's workspace takes one page.
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

/// SwappedToy with c (one page), also made by run 0, which leaves before a, and returns for run 1
/// when a has left. Run 1 waits only for c, and thus transitively for a's room.
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

/// Run 0 reads the weight w (two pages), and run 2 changes it; only run 1 makes the tensor t (three
/// pages). In three pages w must be far beside t.
struct MovedWeight {
  MovedWeight() {
    make_offloadable(graph, w);
    plan = plain_plan(graph, pages(3));
  }
  [[nodiscard]] Move whole(const Progress& after, bool is_clean = false) const {
    return {.data = w, .offset = {}, .size = pages(2), .is_clean = is_clean, .after = after};
  }
  TaskGraph graph = toy_graph("w:2 t:3", "use(w); t = other(); w = update(w)");
  DataId w{0};
  DataId t{1};
  Plan plan;
};

/// w is far between steps: it is prefetched, freed without a copy, prefetched again, and offloaded.
struct FarWeight : MovedWeight {
  FarWeight() {
    plan.prefetches = {whole({}), whole({.runs = 2, .offloads = 1})};
    plan.offloads = {whole({.runs = 1}, true), whole({.runs = 3})};
    plan.runs[0].after.prefetches = 1;
    plan.runs[1].after = {.runs = 1, .offloads = 1, .prefetches = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 2};
  }
};

/// w is near between steps: it is offloaded once and prefetched.
struct NearWeight : MovedWeight {
  NearWeight() {
    plan.offloads = {whole({.runs = 1})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1})};
    plan.runs[1].after = {.runs = 1, .offloads = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 1};
  }
};

/// w is near with a valid far copy between steps: it is freed without a copy and prefetched. After
/// its change it is offloaded and prefetched to renew its far copy.
struct RenewedWeight : MovedWeight {
  RenewedWeight() {
    plan.offloads = {whole({.runs = 1}, true), whole({.runs = 3})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1}), whole({.runs = 3, .offloads = 2})};
    plan.runs[1].after = {.runs = 1, .offloads = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 1};
  }
};

/// w does not move.
struct StillWeight : MovedWeight {
  StillWeight() { plan.budget = pages(5); }
};

}  // namespace spillway::prefetch::testing
