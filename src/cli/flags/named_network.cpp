#include "src/cli/flags/named_network.h"

#include <span>

#include "nets/text/network_file.h"
#include "src/io/onnx/onnx_model.h"
#include "um/error.h"

namespace spillway::cli {

OpenedNetwork open_named_network(const std::string& name) {
  if (!is_onnx_file(name)) return {.entry = nets::open_network(name), .imported = nullptr};
  const auto imported = std::make_shared<const ImportedNetwork>(import_onnx(read_onnx(name), name));
  return {.entry = imported->entry, .imported = imported};
}

TensorSource onnx_weights(const OpenedNetwork& network, bool has_new_head) {
  um::expects(network.imported != nullptr, "the network of an ONNX file");
  return [imported = network.imported, has_new_head](const std::string& name,
                                                     std::span<float> numbers) {
    fill_array(*imported, name, numbers, has_new_head);
  };
}

}  // namespace spillway::cli
