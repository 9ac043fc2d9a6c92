#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "prefetch/task_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// A random training step: a forward DAG whose tasks read one or two earlier tensors, write one or
/// two new ones or update one in place, and a backward pass that reads what forward saved, its
/// inputs, its outputs or nothing, and sometimes adds to an earlier gradient. Sizes are 1 to 6
/// pages; some tasks are convolutions, which read weights, some pool; some have a second algorithm,
/// some may be recomputed, sometimes the first one, which loads the batch, too.
inline TaskGraph random_graph() {
  TaskGraph graph;
  const int layers = *rc::gen::inRange(1, 14);
  const auto new_block = [&](const std::string& name) {
    return graph.add(
        DataBlock{.name = name, .size = pages(*rc::gen::inRange<std::uint64_t>(1, 7))});
  };
  std::vector<DataId> tensors{new_block("x0")};
  std::vector<std::vector<DataId>> saved;
  graph.add(
      Task{.name = "load", .writes = {tensors[0]}, .is_recomputable = *rc::gen::arbitrary<bool>()});
  for (int i = 1; i <= layers; ++i) {
    const std::string name = std::to_string(i);
    Task task{.name = "f" + name,
              .kind = *rc::gen::element(TaskKind::kOther, TaskKind::kConvolution, TaskKind::kPool),
              .is_recomputable = *rc::gen::arbitrary<bool>()};
    task.reads = {tensors.back()};
    const DataId other = tensors[*rc::gen::inRange<std::size_t>(0, tensors.size())];
    if (other != tensors.back() && *rc::gen::inRange(0, 3) == 0) task.reads.push_back(other);
    if (*rc::gen::inRange(0, 4) == 0 && i > 1) {
      task.writes = {tensors.back()};  // in place
    } else {
      tensors.push_back(new_block("x" + name));
      task.writes = {tensors.back()};
      if (*rc::gen::inRange(0, 4) == 0) {
        tensors.push_back(new_block("y" + name));
        task.writes.push_back(tensors.back());
      }
    }
    if (*rc::gen::inRange(0, 3) == 0) {
      task.algorithms.push_back(
          {.name = "fast", .workspace = pages(*rc::gen::inRange<std::uint64_t>(1, 5))});
    }
    saved.push_back(*rc::gen::element(task.reads, task.writes, std::vector<DataId>{}));
    if (task.kind == TaskKind::kConvolution) {
      task.reads.push_back(graph.add(
          DataBlock{.name = "w" + name, .size = um::Bytes{64}, .kind = DataKind::kState}));
      saved.back().push_back(task.reads.back());
    }
    graph.add(task);
  }
  std::vector<DataId> gradients{new_block("g")};
  graph.add(Task{.name = "loss",
                 .phase = Phase::kBackward,
                 .reads = {tensors.back()},
                 .writes = {gradients[0]}});
  DataId gradient = gradients[0];
  for (int i = layers; i >= 1; --i) {
    Task task{.name = "b" + std::to_string(i), .phase = Phase::kBackward};
    task.reads = saved[static_cast<std::size_t>(i - 1)];
    task.reads.push_back(gradient);
    const DataId other = gradients[*rc::gen::inRange<std::size_t>(0, gradients.size())];
    if (other != gradient && *rc::gen::inRange(0, 2) == 0) {
      task.reads.push_back(other);
      gradient = other;
    } else {
      gradient = new_block("g" + std::to_string(i));
      gradients.push_back(gradient);
    }
    task.writes = {gradient};
    graph.add(task);
  }
  return graph;
}

/// A random chain of up to `most_layers` layers: forward i reads x(i-1) and writes x(i), and
/// sometimes, if wanted, a second block that only its backward reads; backward i reads x(i-1), x(i)
/// and dx(i) and writes dx(i-1). Sizes are 1 to 6 pages, some tasks need a workspace, most may be
/// recomputed.
inline TaskGraph random_chain(int most_layers, bool with_second_blocks = true) {
  TaskGraph graph;
  const auto new_block = [&](const std::string& name) {
    return graph.add(
        DataBlock{.name = name, .size = pages(*rc::gen::inRange<std::uint64_t>(1, 7))});
  };
  const auto workspace = [] {
    const bool has_one = *rc::gen::inRange(0, 4) == 0;
    return has_one ? pages(*rc::gen::inRange<std::uint64_t>(1, 5)) : um::Bytes{};
  };
  const int layers = *rc::gen::inRange(1, most_layers + 1);
  std::vector<DataId> x{new_block("x0")};
  std::vector<std::vector<DataId>> saved{{}};
  graph.add(Task{.name = "load", .writes = {x[0]}, .is_recomputable = *rc::gen::arbitrary<bool>()});
  for (int i = 1; i <= layers; ++i) {
    const std::string name = std::to_string(i);
    Task task{.name = "f" + name, .reads = {x.back()}};
    task.algorithms = {{.workspace = workspace()}};
    task.is_recomputable = *rc::gen::inRange(0, 8) > 0;
    x.push_back(new_block("x" + name));
    task.writes = {x.back()};
    saved.emplace_back();
    if (with_second_blocks && *rc::gen::inRange(0, 3) == 0) {
      saved.back().push_back(new_block("s" + name));
      task.writes.push_back(saved.back()[0]);
    }
    graph.add(task);
  }
  DataId dx = new_block("loss");
  graph.add(Task{.name = "loss", .phase = Phase::kBackward, .reads = {x.back()}, .writes = {dx}});
  for (int i = layers; i >= 1; --i) {
    const auto layer = static_cast<std::size_t>(i);
    Task task{.name = "b" + std::to_string(i), .phase = Phase::kBackward};
    task.reads = {x[layer - 1], x[layer], dx};
    task.reads.insert(task.reads.end(), saved[layer].begin(), saved[layer].end());
    task.algorithms = {{.workspace = workspace()}};
    dx = new_block("d" + std::to_string(i - 1));
    task.writes = {dx};
    graph.add(task);
  }
  return graph;
}

/// Random run times for it, a fast algorithm being faster, and a random link. Nothing takes less
/// than 40 ns, so that a trace rounded to nanoseconds has no two events in the wrong order.
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
