#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "src/io/onnx/import_onnx.h"
#include "src/io/onnx/onnx_model.h"
#include "tests/fuzz/target.h"
#include "tests/src/io/onnx/drawn_arrays.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway::fuzz {
namespace {

std::string bytes_of(const nets::Network& network) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("seed.onnx");
  write_onnx(test::exported(network), path);
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

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
