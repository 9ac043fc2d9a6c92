#include "src/io/onnx/graph_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "nets/shape.h"
#include "um/error.h"

namespace spillway {

GraphReader::GraphReader(OnnxModel model) : model_{std::move(model)} {
  for (std::size_t i = 0; i < model_.tensors.size(); ++i) add_constant(model_.tensors[i].name, i);
  take_constants();
  find_input();
  if (model_.outputs.size() != 1) {
    throw um::Error{"the network has " + std::to_string(model_.outputs.size()) +
                    " outputs; export it with its logits alone"};
  }
  find_readers();
}

const OnnxTensor* GraphReader::constant(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &model_.tensors[found->second];
}

std::optional<std::vector<std::int64_t>> GraphReader::integers(const std::string& name) const {
  const OnnxTensor* const tensor = constant(name);
  if (tensor == nullptr || !tensor->floats.empty()) return {};
  return tensor->integers;
}

nets::Shape GraphReader::image() const {
  const OnnxValue& input = this->input();
  std::vector<std::size_t> sides;
  for (std::size_t i = 1; i < input.shape.size(); ++i) {
    const std::size_t side = input.shape[i].value_or(0);
    if (side == 0) {
      throw um::Error{"the network's input '" + input.name +
                      "' has no fixed size; export it with a symbolic batch alone"};
    }
    sides.push_back(side);
  }
  const bool is_vector = sides.size() == 1;
  const bool is_known = input.is_float && (is_vector || sides.size() == 3) &&
                        std::ranges::max(sides) <= nets::kLargestWidth;
  if (!is_known) {
    throw um::Error{"the network's input '" + input.name +
                    "' is no batch of images or vectors of 32-bit floats"};
  }
  if (is_vector) return {.channels = sides[0]};
  return {.channels = sides[0], .height = sides[1], .width = sides[2]};
}

const OnnxTensor& GraphReader::weights(const OnnxNode& node, std::size_t index) const {
  const OnnxTensor* const tensor = has_input(node, index) ? constant(node.inputs[index]) : nullptr;
  if (tensor == nullptr || tensor->floats.empty()) {
    throw node_error(
        node, "has no constant floats as its input " + std::to_string(index + 1) + ", its weights");
  }
  return *tensor;
}

std::vector<std::int64_t> GraphReader::axes(const OnnxNode& node) const {
  using Axes = std::vector<std::int64_t>;
  if (has_input(node, 1)) return integers(node.inputs[1]).value_or(Axes{});
  const auto found = node.attributes.find("axes");
  if (found == node.attributes.end()) return {};
  const auto* const axes = std::get_if<Axes>(&found->second);
  return axes == nullptr ? Axes{} : *axes;
}

bool GraphReader::is_needed(const OnnxNode& node) const { return needed_.contains(&node); }

const OnnxNode* GraphReader::only_reader(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end() || found->second.size() != 1 || value == output()) return nullptr;
  return found->second.front();
}

// Old files list constants as inputs, too.
void GraphReader::find_input() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    if (constants_.contains(model_.inputs[i].name)) continue;
    input_ = i;
    ++count;
  }
  if (count == 1) return;
  throw um::Error{"the network has " + std::to_string(count) +
                  " inputs; only networks that read images and nothing else are trained"};
}

void GraphReader::add_constant(const std::string& name, std::size_t tensor) {
  if (constants_.emplace(name, tensor).second) return;
  throw um::Error{"two arrays are called '" + name + "'"};
}

// Resolves nodes that only pass constants on: torch.onnx.export writes equal arrays once.
void GraphReader::take_constants() {
  for (OnnxNode& node : model_.nodes) {
    if (node.outputs.size() != 1) continue;
    if (node.type == "Constant" && node.attributes.contains("value")) {
      auto* const value = std::get_if<OnnxTensor>(&node.attributes.at("value"));
      if (value == nullptr) continue;
      model_.tensors.push_back(std::move(*value));
      add_constant(node.outputs[0], model_.tensors.size() - 1);
    } else if (node.type == "Identity" && node.inputs.size() == 1) {
      const auto found = constants_.find(node.inputs[0]);
      if (found != constants_.end()) add_constant(node.outputs[0], found->second);
    }
  }
}

void GraphReader::find_readers() {
  std::map<std::string, const OnnxNode*> makers;
  for (const OnnxNode& node : model_.nodes) {
    for (const std::string& output : node.outputs) {
      const bool is_new =
          output.empty() || (!readers_.contains(output) && makers.emplace(output, &node).second);
      if (!is_new) throw node_error(node, "makes '" + output + "', which is there before it");
    }
    for (const std::string& input : node.inputs) readers_[input].push_back(&node);
  }
  std::vector<std::string> wanted{output()};
  while (!wanted.empty()) {
    const auto maker = makers.find(wanted.back());
    wanted.pop_back();
    if (maker == makers.end() || !needed_.insert(maker->second).second) continue;
    std::ranges::copy(maker->second->inputs, std::back_inserter(wanted));
  }
}

bool has_input(const OnnxNode& node, std::size_t index) {
  return index < node.inputs.size() && !node.inputs[index].empty();
}

std::int64_t integer_attribute(const OnnxNode& node, const std::string& word,
                               std::int64_t otherwise) {
  const auto found = node.attributes.find(word);
  if (found == node.attributes.end()) return otherwise;
  const auto* const number = std::get_if<std::int64_t>(&found->second);
  return number == nullptr ? otherwise : *number;
}

}  // namespace spillway
