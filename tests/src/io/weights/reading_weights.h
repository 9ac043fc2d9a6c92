#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

/// Returns the bytes of a file.
[[nodiscard]] inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// A safetensors file that may be invalid in any way.
struct FileOfTensors {
  struct Tensor {
    std::string name;
    std::string type;
    std::vector<std::size_t> shape;
    std::string bytes;
  };
  std::vector<Tensor> tensors;

  /// Parses the bytes of a valid file.
  [[nodiscard]] static FileOfTensors of(const std::string& file) {
    std::uint64_t length = 0;
    for (unsigned i = 0; i < 8; ++i) {
      length |= std::uint64_t{static_cast<unsigned char>(file.at(i))} << (8 * i);
    }
    FileOfTensors result;
    const auto header = nlohmann::json::parse(file.substr(8, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = entry.at("data_offsets").at(0);
      const std::size_t end = entry.at("data_offsets").at(1);
      result.tensors.push_back({.name = name,
                                .type = entry.at("dtype"),
                                .shape = entry.at("shape"),
                                .bytes = file.substr(8 + length + begin, end - begin)});
    }
    return result;
  }

  [[nodiscard]] Tensor& operator[](const std::string& name) {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::out_of_range{name};
  }
  /// Adds a tensor, by default without numbers.
  void add(const std::string& name, const std::string& type = "F32",
           const std::vector<std::size_t>& shape = {0}, const std::string& bytes = "") {
    tensors.push_back({.name = name, .type = type, .shape = shape, .bytes = bytes});
  }
  void erase(const std::string& name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }

  [[nodiscard]] std::string bytes() const {
    nlohmann::json header = nlohmann::json::object();
    std::string numbers;
    for (const Tensor& tensor : tensors) {
      header[tensor.name] = {
          {"dtype", tensor.type},
          {"shape", tensor.shape},
          {"data_offsets", {numbers.size(), numbers.size() + tensor.bytes.size()}}};
      numbers += tensor.bytes;
    }
    const std::string text = header.dump();
    std::string file;
    for (unsigned i = 0; i < 8; ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xFFU);
    return file + text + numbers;
  }
};

/// Reads modified golden files.
class ReadingWeights : public testing::Test {
 protected:
  [[nodiscard]] static FileOfTensors golden(const std::string& name) {
    return FileOfTensors::of(bytes_of(weight_golden(name + ".safetensors")));
  }
  [[nodiscard]] std::string path() const { return folder_.file("w.safetensors"); }

  // The error for a file of these bytes, with "FILE" in place of its path.
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
