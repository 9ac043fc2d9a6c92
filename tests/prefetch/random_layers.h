#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/task_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// Returns layers with a weight and a moment each, of random sizes; some weights are updated in two
/// parts. Weights and moments are offloadable with `has_offloadable_state`.
inline TaskGraph random_layers(bool has_offloadable_state = true) {
  TaskGraph graph;
  const auto add = [&](const std::string& name, bool is_state = false) {
    return graph.add(DataBlock{.name = name,
                               .size = pages(*rc::gen::inRange<std::uint64_t>(1, 6)),
                               .kind = is_state ? DataKind::kState : DataKind::kTensor,
                               .is_offloadable = is_state && has_offloadable_state});
  };
  const int layers = *rc::gen::inRange(1, 7);
  std::vector<DataId> y{add("y0")};
  std::vector<DataId> weights;
  graph.add(Task{.name = "load", .writes = {y[0]}});
  for (int i = 1; i <= layers; ++i) {
    const std::string number = std::to_string(i);
    y.push_back(add("y" + number));
    weights.push_back(add("w" + number, true));
    graph.add(Task{.name = "f" + number,
                   .reads = {y[y.size() - 2], weights.back()},
                   .writes = {y.back()},
                   .is_recomputable = true});
  }
  DataId dy = add("d" + std::to_string(layers));
  graph.add(Task{.name = "loss", .phase = Phase::kBackward, .reads = {y.back()}, .writes = {dy}});
  for (int i = layers; i >= 1; --i) {
    const std::string number = std::to_string(i);
    const DataId w = weights[static_cast<std::size_t>(i - 1)];
    const DataId x = y[static_cast<std::size_t>(i - 1)];
    const DataId dx = add("d" + std::to_string(i - 1));
    graph.add(
        Task{.name = "b" + number, .phase = Phase::kBackward, .reads = {dy, w}, .writes = {dx}});
    const int parts = *rc::gen::inRange(1, 3);
    for (int part = 0; part < parts; ++part) {
      const std::string name = number + "." + std::to_string(part);
      const DataId g = add("g" + name);
      const DataId m = add("m" + name, true);
      graph.add(
          Task{.name = "bw" + name, .phase = Phase::kBackward, .reads = {x, dy}, .writes = {g}});
      graph.add(
          Task{.name = "u" + name, .phase = Phase::kUpdate, .reads = {w, m, g}, .writes = {w, m}});
    }
    dy = dx;
  }
  return graph;
}

}  // namespace spillway::prefetch::testing
