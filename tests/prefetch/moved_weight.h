#pragma once

#include "prefetch/plan.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch::testing {

/// The weight w (two pages) is read by run 0 and changed by run 2; the tensor t (three pages) is
/// made by run 1 alone. In three pages w must be far beside t.
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

/// It is far between steps: it comes, is freed without a copy, comes again, and leaves.
struct FarWeight : MovedWeight {
  FarWeight() {
    plan.prefetches = {whole({}), whole({.runs = 2, .offloads = 1})};
    plan.offloads = {whole({.runs = 1}, true), whole({.runs = 3})};
    plan.runs[0].after.prefetches = 1;
    plan.runs[1].after = {.runs = 1, .offloads = 1, .prefetches = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 2};
  }
};

/// It is near between steps: it leaves once and comes back.
struct NearWeight : MovedWeight {
  NearWeight() {
    plan.offloads = {whole({.runs = 1})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1})};
    plan.runs[1].after = {.runs = 1, .offloads = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 1};
  }
};

/// It is near with a valid far copy between steps: it is freed without a copy, comes back, and once
/// changed leaves and comes back for its far copy.
struct RenewedWeight : MovedWeight {
  RenewedWeight() {
    plan.offloads = {whole({.runs = 1}, true), whole({.runs = 3})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1}), whole({.runs = 3, .offloads = 2})};
    plan.runs[1].after = {.runs = 1, .offloads = 1};
    plan.runs[2].after = {.runs = 2, .offloads = 1, .prefetches = 1};
  }
};

/// Nothing moves it.
struct StillWeight : MovedWeight {
  StillWeight() { plan.budget = pages(5); }
};

}  // namespace spillway::prefetch::testing
