#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/files/safetensors.h"
#include "src/weights/model_files.h"
#include "src/weights/tensor_places.h"

namespace spillway {

/// A network as files of weights know it.
struct NamedNetwork {
  std::string name;                  ///< for sentences
  std::vector<StoredTensor> arrays;  ///< parameters and running statistics
};

/// A model of safetensors files (ModelFiles) with the parameters of a network by the names of
/// another library, open for reading. Whose names they are is told from the files.
class WeightFile {
 public:
  /// Reads all of it once, to find what is wrong with it. Throws: um::Error that says, in one
  /// sentence, why a file cannot be read, that it is of another network, or which tensor is
  /// missing, unexpected, of another shape or not finite.
  /// With `has_new_head`, the network's last layer need not be there, or have its size.
  WeightFile(const std::filesystem::path& path, NamedNetwork network, bool has_new_head = false);

  /// The last layer, where the file does not have it in the network's size; else empty.
  [[nodiscard]] const std::string& drawn_layer() const { return drawn_layer_; }

  /// Fills `numbers` with those of the network's array `name`; leaves those of drawn_layer().
  /// Throws: um::Error when they cannot be read.
  void read(const std::string& name, std::span<float> numbers) const;

  /// "Hugging Face's GPT-2"
  [[nodiscard]] std::string description() const;

 private:
  void choose_names();
  bool take_names(const NamedTensors& named, bool is_bare);
  void find_places();
  // Whether it is of the last layer, which may be drawn.
  [[nodiscard]] bool is_of_new_head(const TensorPlace& place) const;
  void expect_nothing_else() const;
  void expect_ties() const;
  void expect_finite() const;
  [[nodiscard]] std::vector<float> values(std::size_t tensor) const;

  std::filesystem::path path_;
  NamedNetwork network_;
  ModelFiles file_;
  NamedTensors named_;
  std::map<std::string, std::size_t> by_name_;  // tensors of the file, by the table's names
  std::vector<std::size_t> tensors_;            // of the file, for each place
  std::unordered_map<std::string, std::size_t> arrays_;  // of the network, by name
  bool has_new_head_;
  std::string drawn_layer_;
};

}  // namespace spillway
