#pragma once

#include <string>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch::testing {

using namespace um::literals;

inline constexpr um::Bytes kPage = 4_KiB;

constexpr um::Bytes pages(std::uint64_t count) { return count * kPage; }

/// Returns a link that moves one page in 10 ns each way.
inline LinkProfile toy_link() {
  const um::Bandwidth page_in_10ns{static_cast<double>(kPage.count()) / 10e-9};
  return {.offload = page_in_10ns, .prefetch = page_in_10ns};
}

/// Returns a profile in which every task takes `duration` with any algorithm.
inline Profile flat_profile(const TaskGraph& graph, um::Nanoseconds duration) {
  Profile profile{
      .source = "toy", .graph = fingerprint(graph), .durations = {}, .link = toy_link()};
  for (const Task& task : graph.tasks) {
    profile.durations.emplace_back(task.algorithms.size(), duration);
  }
  return profile;
}

/// Returns a chain of `layers` layers with activations of `size`. Forward i reads y(i-1) and writes
/// y(i); backward i reads y(i-1), y(i) and dy(i) and writes dy(i-1). Forward tasks are
/// recomputable.
inline TaskGraph chain(std::size_t layers, um::Bytes size) {
  TaskGraph graph;
  std::vector<DataId> y;
  for (std::size_t i = 0; i <= layers; ++i) {
    y.push_back(graph.add(DataBlock{.name = "y" + std::to_string(i), .size = size}));
  }
  graph.add(Task{.name = "load", .reads = {}, .writes = {y[0]}});
  for (std::size_t i = 1; i <= layers; ++i) {
    graph.add(Task{.name = "f" + std::to_string(i),
                   .reads = {y[i - 1]},
                   .writes = {y[i]},
                   .is_recomputable = true});
  }
  DataId dy = graph.add(DataBlock{.name = "d" + std::to_string(layers), .size = size});
  graph.add(Task{.name = "loss", .phase = Phase::kBackward, .reads = {y[layers]}, .writes = {dy}});
  for (std::size_t i = layers; i >= 1; --i) {
    const DataId dx = graph.add(DataBlock{.name = "d" + std::to_string(i - 1), .size = size});
    graph.add(Task{.name = "b" + std::to_string(i),
                   .phase = Phase::kBackward,
                   .reads = {y[i - 1], y[i], dy},
                   .writes = {dx}});
    dy = dx;
  }
  return graph;
}

/// Returns a plan with every task once, each after the previous one.
inline Plan plain_plan(const TaskGraph& graph, um::Bytes budget) {
  Plan plan{.graph = fingerprint(graph), .budget = budget, .page = kPage};
  plan.runs = runs_in_order(graph);
  for (Position p = 0; p < plan.runs.size(); ++p) plan.runs[p].after.runs = p;
  return plan;
}

/// Returns plain_plan() with `pool` bytes for movable blocks.
inline Plan plain_plan_with_pool(const TaskGraph& graph, um::Bytes pool) {
  return plain_plan(graph, BlockSizes{graph, kPage}.pinned() + pool);
}

/// Returns a problem on `graph` with the toy page and `pool` bytes for movable blocks.
inline Problem problem(const TaskGraph& graph, const Profile& profile, um::Bytes pool) {
  return {.graph = graph,
          .profile = profile,
          .budget = BlockSizes{graph, kPage}.pinned() + pool,
          .page = kPage,
          .chunk = pages(4)};
}

}  // namespace spillway::prefetch::testing
