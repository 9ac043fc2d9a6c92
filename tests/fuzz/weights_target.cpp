#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "src/files/safetensors.h"
#include "tests/fuzz/target.h"
#include "tests/src/weights/weight_networks.h"

namespace spillway::fuzz {
namespace {

constexpr const char* kShard = "model-00001-of-00001.safetensors";

std::string golden_bytes(const std::string& name) {
  std::ifstream file{test::weight_golden(name + ".safetensors"), std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Of a model whose tensors are all in one file.
std::string index_of(const std::string& file) {
  const SafetensorsReader reader{test::weight_golden("gpt.safetensors")};
  nlohmann::json map;
  for (const StoredTensor& tensor : reader.tensors()) map[tensor.name] = file;
  return nlohmann::json{{"weight_map", map}}.dump();
}

// As a training does; refused for one network, it is tried for the other.
void read_weights(const std::string& path, const NamedNetwork& network) {
  const WeightFile file{path, network};
  for (const StoredTensor& array : network.arrays) {
    std::vector<float> numbers(element_count(array.shape));
    file.read(array.name, numbers);
  }
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
            std::error_code ignored;  // it may be there
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

}  // namespace spillway::fuzz
