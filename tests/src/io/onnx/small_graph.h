#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "src/io/onnx/export_onnx.h"
#include "src/io/onnx/import_onnx.h"
#include "src/io/onnx/onnx_model.h"
#include "tests/refusal.h"

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

/// Builds a graph as other programs write it, node by node. Reads `image`, by default (batch, 2, 4,
/// 4), and outputs the value of its last node.
class SmallGraph {
 public:
  SmallGraph() { model_.inputs = {{.name = "image", .shape = {std::nullopt, 2, 4, 4}}}; }

  SmallGraph& input(std::vector<std::optional<std::size_t>> shape) {
    model_.inputs.front().shape = std::move(shape);
    return *this;
  }
  /// Adds an array of random floats.
  SmallGraph& array(const std::string& name, std::vector<std::size_t> shape) {
    const std::size_t count =
        std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
    model_.tensors.push_back(
        {.name = name, .shape = std::move(shape), .floats = drawn_array(name, count)});
    return *this;
  }
  SmallGraph& integers(const std::string& name, std::vector<std::int64_t> numbers) {
    const std::size_t count = numbers.size();
    model_.tensors.push_back({.name = name, .shape = {count}, .integers = std::move(numbers)});
    return *this;
  }
  /// Adds a node with an output of the same name.
  SmallGraph& node(const std::string& type, const std::string& name,
                   std::vector<std::string> inputs, OnnxAttributes attributes = {}) {
    model_.nodes.push_back({.type = type,
                            .name = name,
                            .inputs = std::move(inputs),
                            .outputs = {name},
                            .attributes = std::move(attributes)});
    model_.outputs = {{.name = name, .shape = {}}};
    return *this;
  }
  /// Adds a linear layer with three classes, which ends most graphs.
  SmallGraph& head(const std::string& x, std::size_t features) {
    return array("fc.weight", {3, features})
        .node("Gemm", "fc", {x, "fc.weight"}, {{"transB", std::int64_t{1}}});
  }

  [[nodiscard]] OnnxModel& model() { return model_; }

 private:
  OnnxModel model_;
};

[[nodiscard]] inline ImportedNetwork imported(SmallGraph& graph) {
  return import_onnx(graph.model(), "my.onnx");
}

[[nodiscard]] inline std::string refusal_of(SmallGraph graph) {
  return refusal([&] { return imported(graph); });
}

}  // namespace spillway::test
