#include "src/onnx/graph_writer.h"

#include <functional>
#include <numeric>
#include <utility>

namespace spillway {

std::string GraphWriter::add(const std::string& type, const std::string& name,
                             std::vector<std::string> inputs, OnnxAttributes attributes) {
  std::string value = name + ".out";
  add_several(type, name, std::move(inputs), {value}, std::move(attributes));
  return value;
}

void GraphWriter::add_several(const std::string& type, const std::string& name,
                              std::vector<std::string> inputs, std::vector<std::string> outputs,
                              OnnxAttributes attributes) {
  model_.nodes.push_back({.type = type,
                          .name = name,
                          .inputs = std::move(inputs),
                          .outputs = std::move(outputs),
                          .attributes = std::move(attributes)});
}

std::string GraphWriter::array(const std::string& name, std::vector<std::size_t> shape) {
  if (!is_new(name)) return name;
  const std::size_t count =
      std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
  OnnxTensor& tensor = model_.tensors.emplace_back(
      OnnxTensor{.name = name, .shape = std::move(shape), .floats = std::vector<float>(count)});
  arrays_(name, tensor.floats);
  return name;
}

std::string GraphWriter::floats(const std::string& name, std::vector<std::size_t> shape,
                                std::vector<float> numbers) {
  if (is_new(name)) {
    model_.tensors.push_back(
        {.name = name, .shape = std::move(shape), .floats = std::move(numbers)});
  }
  return name;
}

std::string GraphWriter::integers(const std::string& name, std::vector<std::int64_t> numbers) {
  if (!is_new(name)) return name;
  const std::size_t count = numbers.size();
  model_.tensors.push_back({.name = name, .shape = {count}, .integers = std::move(numbers)});
  return name;
}

}  // namespace spillway
