#include "src/onnx/graph_writer.h"

#include <functional>
#include <numeric>
#include <utility>

#include "um/error.h"

namespace spillway {
std::string GraphWriter::add(const std::string& type, const std::string& name,
                             std::vector<std::string> inputs, OnnxAttributes attributes) {
  return add_several(type, name, std::move(inputs), {name + ".out"}, std::move(attributes)).front();
}

std::vector<std::string> GraphWriter::add_several(const std::string& type, const std::string& name,
                                                  std::vector<std::string> inputs,
                                                  std::vector<std::string> outputs,
                                                  OnnxAttributes attributes) {
  for (std::string& output : outputs) output = names_.take(output);
  model_.nodes.push_back({.type = type,
                          .name = nodes_.take(name),
                          .inputs = std::move(inputs),
                          .outputs = outputs,
                          .attributes = std::move(attributes)});
  return outputs;
}

std::string GraphWriter::array(const std::string& name, std::vector<std::size_t> shape) {
  if (!known_arrays_.insert(name).second) return name;
  if (!names_.insert(name)) {
    throw um::Error{"array " + name + " is called as a value of another layer is"};
  }
  const std::size_t count =
      std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
  OnnxTensor& tensor = model_.tensors.emplace_back(
      OnnxTensor{.name = name, .shape = std::move(shape), .floats = std::vector<float>(count)});
  arrays_(name, tensor.floats);
  return name;
}

std::string GraphWriter::floats(const std::string& name, std::vector<std::size_t> shape,
                                std::vector<float> numbers) {
  return constant({.name = name, .shape = std::move(shape), .floats = std::move(numbers)});
}

std::string GraphWriter::integers(const std::string& name, std::vector<std::int64_t> numbers) {
  const std::size_t count = numbers.size();
  return constant({.name = name, .shape = {count}, .integers = std::move(numbers)});
}

std::string GraphWriter::constant(OnnxTensor tensor) {
  std::vector<std::size_t>& alike = constants_[tensor.name];
  const std::string wanted = tensor.name;
  for (const std::size_t each : alike) {
    tensor.name = model_.tensors[each].name;
    if (model_.tensors[each] == tensor) return tensor.name;
  }
  tensor.name = names_.take(wanted);
  alike.push_back(model_.tensors.size());
  return model_.tensors.emplace_back(std::move(tensor)).name;
}

}  // namespace spillway
