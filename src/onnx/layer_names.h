#pragma once

#include <string>

#include "src/onnx/onnx_model.h"
#include "um/text/free_names.h"

namespace spillway {

/// Names for the layers of a network, of those that its file has.
class LayerNames {
 public:
  /// That of its weights, "conv1" of "conv1.weight", or else that of the node, "layer1/relu" of
  /// "/layer1/relu/Relu": with letters that names of layers have, and different from all before.
  [[nodiscard]] std::string name_for(const OnnxNode& node, const std::string& weights = {});
  /// `name`, likewise.
  [[nodiscard]] std::string unique(const std::string& name);

 private:
  um::FreeNames names_{{"image", "labels", "loss"}};
};

/// `name` with '_' for what may not be part of a layer's name, and not too long.
[[nodiscard]] std::string as_layer_name(const std::string& name);

}  // namespace spillway
