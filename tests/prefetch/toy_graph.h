#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch::testing {

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
