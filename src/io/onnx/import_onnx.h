#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/io/onnx/onnx_model.h"
#include "um/text/wording.h"

namespace spillway {

/// A network of an ONNX file, with its trained numbers.
struct ImportedNetwork {
  std::string file;  ///< for sentences
  /// `build` infers shapes anew for other images; another number of classes is one of the last
  /// layer with weights. Throws: um::Error that names the file, where that is not possible.
  nets::CatalogueEntry entry;
  std::string head;  ///< the layer whose features are the classes; empty where there is no such
  std::map<std::string, std::vector<float>> arrays;  ///< by name: "conv1.weight"
};

/// The network that `model` is, of the operators of layer_operators.h, in the form that PyTorch's
/// exporters write. A softmax at its end is left to the loss. Throws: um::Error, one sentence that
/// names `file` and the node: an operator that is no layer, an attribute that no layer has, weights
/// that do not fit or are not finite.
[[nodiscard]] ImportedNetwork import_onnx(OnnxModel model, const std::string& file);

/// Fills `numbers` with those of the array `name`. With `has_new_head`, leaves those of the head
/// where they have another size. Throws: um::Error where the network was built for another image
/// size or other classes, and has an array of another size for that,
/// or has none of this name.
void fill_array(const ImportedNetwork& network, const std::string& name, std::span<float> numbers,
                bool has_new_head);

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
