#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nets/network.h"
#include "src/io/onnx/export_onnx.h"

namespace spillway::test {

/// Fills an array with random numbers, all different, that depend only on its name.
inline void draw_array(const std::string& name, std::span<float> numbers) {
  std::size_t state = std::hash<std::string>{}(name);
  for (float& number : numbers) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    number = static_cast<float>(state >> 40U) / static_cast<float>(1U << 24U) + 0.001F;
  }
}

[[nodiscard]] inline std::vector<float> drawn_array(const std::string& name, std::size_t count) {
  std::vector<float> numbers(count);
  draw_array(name, numbers);
  return numbers;
}

/// Exports `network` with random arrays.
[[nodiscard]] inline OnnxModel exported(const nets::Network& network) {
  return export_onnx(network, draw_array);
}

/// Returns `network` as used for inference, without Dropout.
[[nodiscard]] inline nets::Network without_dropout(const nets::Network& network) {
  nets::Network rest{.name = network.name, .nodes = {}};
  std::vector<nets::NodeId> renamed;
  for (const nets::Node& node : network.nodes) {
    if (!node.inputs.empty() && std::holds_alternative<nets::Dropout>(node.layer)) {
      renamed.push_back(renamed[static_cast<std::size_t>(node.inputs[0])]);
      continue;
    }
    renamed.push_back(nets::NodeId{static_cast<std::uint32_t>(rest.nodes.size())});
    nets::Node& kept = rest.nodes.emplace_back(node);
    for (nets::NodeId& input : kept.inputs) input = renamed[static_cast<std::size_t>(input)];
  }
  return rest;
}

}  // namespace spillway::test
