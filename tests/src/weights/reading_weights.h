#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/weights/file_of_tensors.h"
#include "tests/src/weights/weight_networks.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

/// Reads files that are a golden one, changed.
class ReadingWeights : public testing::Test {
 protected:
  [[nodiscard]] static FileOfTensors golden(const std::string& name) {
    return FileOfTensors::of(bytes_of(weight_golden(name + ".safetensors")));
  }
  [[nodiscard]] std::string path() const { return folder_.file("w.safetensors"); }

  // What is said of a file with these bytes for a network, but for "FILE" instead of its path.
  [[nodiscard]] std::string said_of(const std::string& bytes, const NamedNetwork& network) const {
    std::ofstream{path(), std::ios::binary} << bytes;
    std::string sentence = refusal([&] { return WeightFile{path(), network}; });
    for (auto at = sentence.find(path()); at != std::string::npos; at = sentence.find(path())) {
      sentence.replace(at, path().size(), "FILE");
    }
    return sentence;
  }
  [[nodiscard]] std::string said_of(const std::string& bytes) const { return said_of(bytes, gpt_); }
  [[nodiscard]] std::string said_of(const FileOfTensors& file) const {
    return said_of(file.bytes());
  }
  [[nodiscard]] std::vector<float> values(const std::string& bytes, const NamedNetwork& network,
                                          const std::string& array) const {
    EXPECT_EQ(said_of(bytes, network), "accepted");
    const WeightFile file{path(), network};
    const auto found = std::ranges::find(network.arrays, array, &StoredTensor::name);
    std::vector<float> numbers(element_count(found->shape));
    file.read(array, numbers);
    return numbers;
  }

  TemporaryFolder folder_;
  NamedNetwork gpt_ = named(weight_network("gpt"));
  FileOfTensors file_ = golden("gpt");
};

}  // namespace spillway::test
