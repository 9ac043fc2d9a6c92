#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "src/onnx/import_onnx.h"
#include "src/onnx/onnx_file.h"
#include "tests/fuzz/target.h"
#include "tests/src/onnx/drawn_arrays.h"
#include "tests/src/weights/weight_networks.h"
#include "um/error.h"

namespace spillway::fuzz {
namespace {

std::string bytes_of(const nets::Network& network) {
  std::string folder = std::filesystem::temp_directory_path() / "spillway-fuzz-XXXXXX";
  um::expects(mkdtemp(folder.data()) != nullptr, "a fuzzer can make a temporary folder");
  const std::string path = folder + "/seed.onnx";
  write_onnx(test::exported(network), path);
  std::ifstream file{path, std::ios::binary};
  std::string bytes{std::istreambuf_iterator<char>{file}, {}};
  std::filesystem::remove_all(folder);
  return bytes;
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
