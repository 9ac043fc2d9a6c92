#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/io/onnx/onnx_model.h"
#include "um/text/wording.h"

namespace spillway {

/// A network of an ONNX file, with its trained weights.
struct ImportedNetwork {
  std::string file;  ///< for messages
  /// `build` infers shapes again for other images. For other classes it changes the last layer with
  /// weights. Throws: um::Error that names the file if that is impossible.
  nets::CatalogueEntry entry;
  std::string head;  ///< the layer that outputs the classes; empty if there is none
  std::map<std::string, std::vector<float>> arrays;  ///< by name: "conv1.weight"
};

/// Converts `model` to a network. Supports the operators of operator_attributes.cpp in the form
/// that PyTorch's exporters write. A final softmax is left to the loss. Throws: um::Error, one
/// sentence that names `file` and the node, for an unsupported operator or attribute, or weights of
/// the wrong shape or not finite.
[[nodiscard]] ImportedNetwork import_onnx(OnnxModel model, const std::string& file);

/// Fills `numbers` with the array `name`. With `has_new_head`, leaves arrays of the head that have
/// another size unchanged.
/// Throws: um::Error when the array is missing, or its size differs because the network was built
/// for another image size or number of classes.
void fill_array(const ImportedNetwork& network, const std::string& name, std::span<float> numbers,
                bool has_new_head);

/// Chooses unique names for layers from the names in the file.
class LayerNames {
 public:
  /// Returns the name of the weights, "conv1" for "conv1.weight", or else that of the node,
  /// "layer1/relu" for "/layer1/relu/Relu". Replaces letters that layer names cannot have, and
  /// makes the name unique.
  [[nodiscard]] std::string name_for(const OnnxNode& node, const std::string& weights = {});
  /// Returns `name` with valid letters, made unique.
  [[nodiscard]] std::string unique(const std::string& name);

 private:
  um::FreeNames names_{{"image", "labels", "loss"}};
};

/// Returns `name` with '_' for letters that layer names cannot have, shortened if needed.
[[nodiscard]] std::string as_layer_name(const std::string& name);

}  // namespace spillway
