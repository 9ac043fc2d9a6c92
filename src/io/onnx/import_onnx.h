#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/io/onnx/onnx_model.h"

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

}  // namespace spillway
