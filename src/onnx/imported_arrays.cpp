#include "src/onnx/imported_arrays.h"

#include "src/files/finite.h"
#include "src/files/safetensors.h"
#include "src/onnx/node_error.h"

namespace spillway {

void ImportedArrays::take(const GraphReader& graph, const OnnxNode& node, std::size_t index,
                          const std::string& name, const std::vector<std::size_t>& shape) {
  const OnnxTensor& tensor = graph.weights(node, index);
  if (tensor.shape.size() > 1 && !matrices_.insert(&tensor).second) {
    throw node_error(node, "shares its weights with an earlier node, which layers do not");
  }
  if (tensor.shape != shape) {
    throw node_error(node, "has an array '" + tensor.name + "' of " + shape_text(tensor.shape) +
                               ", but needs " + shape_text(shape));
  }
  if (!is_finite(tensor.floats)) {
    throw node_error(node, "has an array '" + tensor.name + "' that " + kNotFinite);
  }
  arrays_[name] = tensor.floats;
}

void ImportedArrays::transpose(const std::string& name, std::size_t columns) {
  std::vector<float>& matrix = arrays_.at(name);
  std::vector<float> turned;
  turned.reserve(matrix.size());
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t at = column; at < matrix.size(); at += columns) turned.push_back(matrix[at]);
  }
  matrix = std::move(turned);
}

}  // namespace spillway
