#pragma once

#include <rapidcheck.h>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// Random run times for `graph`, a fast algorithm being faster, and a random link. Nothing takes
/// less than 40 ns, so that a trace rounded to nanoseconds has no two events in the wrong order.
inline Profile random_profile(const TaskGraph& graph) {
  Profile profile{.source = "random", .graph = fingerprint(graph), .durations = {}, .link = {}};
  for (const Task& task : graph.tasks) {
    const int duration = 100 * *rc::gen::inRange(1, 400);
    profile.durations.push_back({um::Nanoseconds{duration}});
    if (task.algorithms.size() > 1)
      profile.durations.back().push_back(um::Nanoseconds{duration / 2});
  }
  const um::Bandwidth rate{static_cast<double>(kPage.count()) / (1e-7 * *rc::gen::inRange(1, 200))};
  profile.link = {.offload = rate,
                  .prefetch = rate,
                  .latency = um::Nanoseconds{100 * *rc::gen::inRange(0, 20)},
                  .is_duplex = *rc::gen::arbitrary<bool>(),
                  .copies_while_read = *rc::gen::arbitrary<bool>()};
  return profile;
}

}  // namespace spillway::prefetch::testing
