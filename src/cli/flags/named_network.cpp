#include "src/cli/flags/named_network.h"

#include <memory>
#include <span>

#include "nets/text/network_file.h"
#include "src/onnx/import_onnx.h"
#include "src/onnx/onnx_file.h"

namespace spillway::cli {

nets::CatalogueEntry open_named_network(const std::string& name) {
  return is_onnx_file(name) ? import_onnx(read_onnx(name), name).entry : nets::open_network(name);
}

TensorSource onnx_weights(const std::string& file, bool has_new_head) {
  // shared: function objects are copied
  const auto network = std::make_shared<const ImportedNetwork>(import_onnx(read_onnx(file), file));
  return [network, has_new_head](const std::string& name, std::span<float> numbers) {
    fill_array(*network, name, numbers, has_new_head);
  };
}

}  // namespace spillway::cli
