#pragma once

#include <rapidcheck.h>

#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// Returns a budget from the smallest to the resident need plus `more`, in pages.
inline um::Bytes random_budget(const TaskGraph& graph, um::Bytes more = {}) {
  const NearNeed need = near_need(graph, BlockSizes{graph, kPage});
  const std::uint64_t slack = (need.resident + more - need.smallest) / kPage;
  return need.smallest + pages(*rc::gen::inRange<std::uint64_t>(0, slack + 1));
}

/// Returns random run times for `graph`, shorter with a fast algorithm, and a random link. All
/// times are at least 40 ns, so rounding to nanoseconds does not reorder events in a trace.
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

/// Returns a random problem that most planners can solve, with random options.
inline Problem random_problem(const TaskGraph& graph, const Profile& profile) {
  return {.graph = graph,
          .profile = profile,
          .budget = random_budget(graph, kPage),
          .page = kPage,
          .chunk = pages(*rc::gen::inRange<std::uint64_t>(1, 5)),
          .whole_blocks = *rc::gen::arbitrary<bool>(),
          .may_recompute = *rc::gen::arbitrary<bool>(),
          // A search for orders takes ten times as long.
          .may_reorder = *rc::gen::weightedElement<bool>({{3, false}, {1, true}})};
}

}  // namespace spillway::prefetch::testing
