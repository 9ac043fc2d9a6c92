#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/io/safetensors.h"
#include "src/io/weights/model_files.h"
#include "src/io/weights/name_table.h"
#include "src/io/weights/tensor_places.h"

namespace spillway {

/// A network with the arrays to read from files of weights.
struct NamedNetwork {
  std::string name;                  ///< for messages
  std::vector<StoredTensor> arrays;  ///< parameters and running statistics
};

/// A model in safetensors files (ModelFiles) with a network's parameters under the names of another
/// library. Detects the library from the files.
class WeightFile {
 public:
  /// Opens the model and reads all of it once to check it. Throws: um::Error, one sentence, when a
  /// file cannot be read, belongs to another network, or has a tensor that is missing, unexpected,
  /// of another shape or not finite.
  /// With `has_new_head`, the last layer may be missing or have another size.
  WeightFile(const std::filesystem::path& path, NamedNetwork network, bool has_new_head = false);

  /// The last layer if the file lacks it in the network's size; otherwise empty. It is initialised
  /// at random.
  [[nodiscard]] const std::string& drawn_layer() const { return drawn_layer_; }

  /// Fills `numbers` with the network's array `name`; leaves arrays of drawn_layer() unchanged.
  /// Throws: um::Error when they cannot be read.
  void read(const std::string& name, std::span<float> numbers) const;

  /// Returns "Hugging Face's GPT-2".
  [[nodiscard]] std::string description() const;

 private:
  void choose_names();
  bool take_names(const NamedTensors& named, bool is_bare);
  void find_places();
  // Returns whether `place` belongs to a last layer that may be initialised at random.
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
  std::vector<std::size_t> tensors_;            // indices in the file, for each place
  std::unordered_map<std::string, std::size_t> arrays_;  // indices in the network, by name
  bool has_new_head_;
  std::string drawn_layer_;
};

/// A summary of what was written.
struct ExportedWeights {
  std::string title;  ///< "Hugging Face's GPT-2"
  std::size_t tensors = 0;
};

/// The numbers of a checkpoint to write.
enum class ExportedState : std::uint8_t {
  kWeights,
  kAverages  ///< moving averages where the checkpoint has them; otherwise weights
};

/// The state to write and the names to use.
struct ExportOptions {
  WeightSource source = WeightSource::kTorchvision;
  ExportedState state = ExportedState::kWeights;
};

/// Writes the parameters and running statistics of `checkpoint`, which belongs to `network`, to
/// `file` as F32. Replaces an existing file atomically. Throws: um::Error when the network has no
/// such names, or the file cannot be written.
ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               const ExportOptions& options, const std::filesystem::path& file);

}  // namespace spillway
