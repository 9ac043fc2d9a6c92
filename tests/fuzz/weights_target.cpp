#include "tests/fuzz/weights_target.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/src/weights/weight_networks.h"

namespace spillway::fuzz {
namespace {

std::string golden_bytes(const std::string& name) {
  std::ifstream file{test::weight_golden(name + ".safetensors"), std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
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
           golden_bytes("llama")},
          [gpt, vit](const std::string& input, const std::filesystem::path& folder) {
            const std::string path = folder / "w.safetensors";
            std::ofstream{path, std::ios::binary} << input;
            try {
              read_weights(path, gpt);
            } catch (const um::Error&) {
              read_weights(path, vit);
            }
          }};
}

}  // namespace spillway::fuzz
