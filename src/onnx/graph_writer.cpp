#include "src/onnx/graph_writer.h"

#include <functional>
#include <numeric>
#include <utility>

#include "um/error.h"

namespace spillway {
namespace {

// `name`, or name_2 and so on: the first that `is_free` says is.
template <typename IsFree>
std::string first_free(const std::string& name, IsFree is_free) {
  std::string each = name;
  for (int i = 2; !is_free(each); ++i) each = name + "_" + std::to_string(i);
  return each;
}

}  // namespace

std::string GraphWriter::add(const std::string& type, const std::string& name,
                             std::vector<std::string> inputs, OnnxAttributes attributes) {
  return add_several(type, name, std::move(inputs), {name + ".out"}, std::move(attributes)).front();
}

std::vector<std::string> GraphWriter::add_several(const std::string& type, const std::string& name,
                                                  std::vector<std::string> inputs,
                                                  std::vector<std::string> outputs,
                                                  OnnxAttributes attributes) {
  const auto is_new_in = [](std::set<std::string>& names) {
    return [&names](const std::string& each) { return names.insert(each).second; };
  };
  for (std::string& output : outputs) output = first_free(output, is_new_in(names_));
  model_.nodes.push_back({.type = type,
                          .name = first_free(name, is_new_in(nodes_)),
                          .inputs = std::move(inputs),
                          .outputs = outputs,
                          .attributes = std::move(attributes)});
  return outputs;
}

std::string GraphWriter::array(const std::string& name, std::vector<std::size_t> shape) {
  if (!known_arrays_.insert(name).second) return name;
  if (!names_.insert(name).second) {
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
  const std::string name = tensor.name;
  tensor.name = first_free(name, [&](const std::string& each) {
    tensor.name = each;
    if (names_.insert(each).second) return true;
    const auto found = constants_.find(each);
    return found != constants_.end() && model_.tensors[found->second] == tensor;
  });
  std::string own = tensor.name;
  if (constants_.emplace(own, model_.tensors.size()).second) {
    model_.tensors.push_back(std::move(tensor));
  }
  return own;
}

}  // namespace spillway
