#pragma once

#include "prefetch/plan.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch::testing {

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
