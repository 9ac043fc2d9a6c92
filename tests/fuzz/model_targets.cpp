#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "src/io/onnx/import_onnx.h"
#include "src/io/onnx/onnx_model.h"
#include "src/io/safetensors.h"
#include "tests/fuzz/target.h"
#include "tests/src/io/onnx/small_graph.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway::fuzz {
namespace {

constexpr const char* kShard = "model-00001-of-00001.safetensors";

std::string golden_bytes(const std::string& name) {
  std::ifstream file{test::weight_golden(name + ".safetensors"), std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Returns the index of a model with all tensors in one file.
std::string index_of(const std::string& file) {
  const SafetensorsReader reader{test::weight_golden("gpt.safetensors")};
  nlohmann::json map;
  for (const StoredTensor& tensor : reader.tensors()) map[tensor.name] = file;
  return nlohmann::json{{"weight_map", map}}.dump();
}

// Reads weights as a training does.
void read_weights(const std::string& path, const NamedNetwork& network) {
  const WeightFile file{path, network};
  for (const StoredTensor& array : network.arrays) {
    std::vector<float> numbers(element_count(array.shape));
    file.read(array.name, numbers);
  }
}

std::string bytes_of(const nets::Network& network) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("seed.onnx");
  write_onnx(test::exported(network), path);
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

Target weights_target() {
  const NamedNetwork gpt = test::named(test::weight_network("gpt"));
  const NamedNetwork vit = test::named(test::weight_network("vit"));
  return {"weights",
          {golden_bytes("gpt"), golden_bytes("vit"), golden_bytes("vit-torchvision"),
           golden_bytes("llama"), index_of(kShard)},
          [gpt, vit](const std::string& input, const std::filesystem::path& folder) {
            const bool is_index = input.starts_with('{');
            const std::string path =
                folder / (is_index ? "model.safetensors.index.json" : "w.safetensors");
            std::ofstream{path, std::ios::binary} << input;
            std::error_code ignored;  // the file may exist
            if (is_index) {
              std::filesystem::copy(test::weight_golden("gpt.safetensors"), folder / kShard,
                                    ignored);
            }
            try {
              read_weights(path, gpt);
            } catch (const um::Error&) {
              read_weights(path, vit);
            }
          }};
}

Target onnx_target() {
  std::vector<std::string> seeds{"no ONNX"};
  if (has_onnx_library()) {
    seeds = {bytes_of(nets::build_network("lenet", {.image = nets::Shape{1, 12, 12}})),
             bytes_of(test::weight_network("thin-resnet")), bytes_of(test::weight_network("gpt"))};
  }
  return {"onnx", std::move(seeds),
          [](const std::string& input, const std::filesystem::path& folder) {
            const std::string path = folder / "n.onnx";
            std::ofstream{path, std::ios::binary} << input;
            const ImportedNetwork network = import_onnx(read_onnx(path), path);
            static_cast<void>(nets::build_network(network.entry));
            for (const auto& [name, numbers] : network.arrays) {
              std::vector<float> own(numbers.size());
              fill_array(network, name, own, /*has_new_head=*/false);
            }
          }};
}

}  // namespace spillway::fuzz
