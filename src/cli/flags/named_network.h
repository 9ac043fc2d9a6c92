#pragma once

#include <memory>
#include <string>

#include "nets/families/network_catalogue.h"
#include "src/io/onnx/import_onnx.h"
#include "src/train/state.h"

namespace spillway::cli {

/// A network that a user names.
struct OpenedNetwork {
  nets::CatalogueEntry entry;
  /// What of an ONNX file is not in the entry: its trained numbers. Null of other networks. Shared
  /// with whoever takes these from it.
  std::shared_ptr<const ImportedNetwork> imported;
};

/// A built-in network, or that of a network file or of an ONNX file, which is read once. Throws:
/// um::Error as nets::open_network(), read_onnx() and import_onnx() do.
[[nodiscard]] OpenedNetwork open_named_network(const std::string& name);

/// The trained numbers of an ONNX file; with `has_new_head` without those of the last layer where
/// they are of another number of classes. What is returned throws as fill_array() does. Requires:
/// it is an ONNX file's.
[[nodiscard]] TensorSource onnx_weights(const OpenedNetwork& network, bool has_new_head);

}  // namespace spillway::cli
