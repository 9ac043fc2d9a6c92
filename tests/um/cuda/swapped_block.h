#pragma once

#include <cstdint>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::um {

inline constexpr Bytes kPage = 2_MiB;

constexpr Bytes pages(std::uint64_t count) { return count * kPage; }

/// Makes a, keeps it far while b is made with a workspace of one page, and then uses a to make c. a
/// has two pages at 0; b and c have one page each at 2, at different times; the workspace is at 3.
/// With a budget of three pages, the offload must end before b is made.
struct SwappedBlock {
  SwappedBlock() {
    using prefetch::DataBlock;
    using prefetch::Task;
    using prefetch::TaskId;
    const auto a = graph.add(DataBlock{.name = "a", .size = pages(2)});
    const auto b = graph.add(DataBlock{.name = "b", .size = pages(1)});
    const auto c = graph.add(DataBlock{.name = "c", .size = pages(1)});
    graph.add(Task{.name = "make a", .writes = {a}});
    graph.add(Task{.name = "make b", .writes = {b}, .algorithms = {{.workspace = pages(1)}}});
    graph.add(Task{.name = "use a", .reads = {a}, .writes = {a, c}});
    plan = {.graph = fingerprint(graph), .budget = pages(3), .page = kPage};
    plan.runs = {{.task = TaskId{0}},
                 {.task = TaskId{1}, .after = {1, 1, 0}},
                 {.task = TaskId{2}, .after = {2, 1, 1}}};
    plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(2), .after = {2, 1, 0}}};
  }

  prefetch::TaskGraph graph;
  prefetch::Plan plan;
};

}  // namespace spillway::um
