#pragma once

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/error.h"

namespace spillway::prefetch::testing {

using namespace um::literals;

inline constexpr um::Bytes kPage = 4_KiB;

constexpr um::Bytes pages(std::uint64_t count) { return count * kPage; }

/// Returns a link that moves one page in `time` each way.
inline LinkProfile toy_link(um::Nanoseconds time = um::Nanoseconds{10}) {
  const um::Bandwidth rate{static_cast<double>(kPage.count()) /
                           std::chrono::duration<double>{time}.count()};
  return {.offload = rate, .prefetch = rate};
}

/// Returns a profile in which every task takes `duration` with any algorithm, and a page `move`
/// each way.
inline Profile flat_profile(const TaskGraph& graph, um::Nanoseconds duration,
                            um::Nanoseconds move = um::Nanoseconds{10}) {
  Profile profile{
      .source = "toy", .graph = fingerprint(graph), .durations = {}, .link = toy_link(move)};
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

/// Returns the block with this name. Requires: it exists.
inline DataId find_block(const TaskGraph& graph, const std::string& block) {
  const auto found = std::ranges::find(graph.data, block, &DataBlock::name);
  um::expects(found != graph.data.end(), "a block of the toy graph");
  return DataId(found - graph.data.begin());
}

/// Returns the blocks with these comma-separated names.
inline std::vector<DataId> find_blocks(const TaskGraph& graph, const std::string& blocks) {
  std::vector<DataId> ids;
  std::istringstream names{blocks};
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    ids.push_back(find_block(graph, name.substr(0, name.find(' '))));
  }
  return ids;
}

/// Adds tasks, written as calls that read and write blocks: "x, y = make(); use it(x)".
inline void add_tasks(TaskGraph& graph, const std::string& calls) {
  std::istringstream text{calls};
  for (std::string call; std::getline(text >> std::ws, call, ';');) {
    const std::size_t open = call.find('(');
    const std::size_t close = call.find(')');
    um::expects(open != std::string::npos && close != std::string::npos && close > open,
                "a call of the toy graph");
    const std::size_t equals = call.find(" = ");
    const std::size_t name = equals == std::string::npos ? 0 : equals + 3;
    graph.add(Task{.name = call.substr(name, open - name),
                   .reads = find_blocks(graph, call.substr(open + 1, close - open - 1)),
                   .writes = find_blocks(graph, call.substr(0, name == 0 ? 0 : equals))});
  }
}

/// Returns a graph of blocks, "x:2 y:1" with their pages, and of tasks as in add_tasks().
inline TaskGraph toy_graph(const std::string& blocks, const std::string& calls) {
  TaskGraph graph;
  std::istringstream text{blocks};
  for (std::string block; text >> block;) {
    const std::size_t colon = block.find(':');
    graph.add(DataBlock{.name = block.substr(0, colon),
                        .size = pages(std::stoull(block.substr(colon + 1)))});
  }
  add_tasks(graph, calls);
  return graph;
}

/// Turns a block into a weight that may be far between steps.
inline void make_offloadable(TaskGraph& graph, DataId weight) {
  DataBlock& block = graph.data[static_cast<std::size_t>(weight)];
  block.kind = DataKind::kState;
  block.is_offloadable = true;
}

}  // namespace spillway::prefetch::testing
