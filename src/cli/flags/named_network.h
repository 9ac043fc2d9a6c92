#pragma once

#include <string>

#include "nets/families/network_catalogue.h"
#include "src/train/state.h"

namespace spillway::cli {

/// The network that a user names: a built-in one, or that of a network file or of an ONNX file.
/// Throws: um::Error as nets::open_network(), read_onnx() and import_onnx() do.
[[nodiscard]] nets::CatalogueEntry open_named_network(const std::string& name);

/// The trained numbers of an ONNX file; with `has_new_head` without those of the last layer where
/// they are of another number of classes. Throws: likewise; what is returned, as fill_array() does.
[[nodiscard]] TensorSource onnx_weights(const std::string& file, bool has_new_head);

}  // namespace spillway::cli
