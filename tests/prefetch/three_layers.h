#pragma once

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/update_order.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// One forward task and three backward layers, each followed by its update with a gradient of 1, 2
/// or 1 pages.
inline TaskGraph three_layers() {
  TaskGraph graph = toy_graph("w1:1 w2:1 w3:1 t:1 g1:1 g2:2 g3:1",
                              "t = f(w1, w2, w3);"
                              "g3 = b3(t, w3); w3 = u3(w3, g3);"
                              "g2 = b2(t, w2); w2 = u2(w2, g2);"
                              "g1 = b1(t, w1); w1 = u1(w1, g1)");
  for (Task& task : graph.tasks) {
    if (task.name[0] == 'b') task.phase = Phase::kBackward;
    if (task.name[0] == 'u') task.phase = Phase::kUpdate;
  }
  for (const char* name : {"w1", "w2", "w3"}) {
    graph.data[static_cast<std::size_t>(find_block(graph, name))].kind = DataKind::kState;
  }
  return graph;
}

/// Returns the graph with exchanges, and with updates ordered to leave time for these.
inline TaskGraph exchanged(TaskGraph graph, const BucketRule& rule) {
  graph = with_exchanges(std::move(graph), rule);
  const std::vector<TaskId> order = update_order(graph);
  return in_order(std::move(graph), order);
}

/// One bucket for each gradient of at least a page.
inline constexpr BucketRule kBucketEach{.first = pages(1), .others = pages(1)};

/// Two ranks, which send 1 page in 100 ns. Each of the two messages takes 5 ns more.
inline Interconnect two_ranks() {
  return {.ranks = 2,
          .bandwidth = um::Bandwidth{static_cast<double>(kPage.count()) / 100e-9},
          .latency = um::Nanoseconds{5}};
}

}  // namespace spillway::prefetch::testing
