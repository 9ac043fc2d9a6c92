#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/files/sha256.h"
#include "um/files/folder.h"
#include "um/files/input_file.h"
#include "um/files/replaced_file.h"

namespace spillway {

/// An array of numbers in a safetensors file (github.com/huggingface/safetensors), the last
/// dimension next to each other.
struct StoredTensor {
  std::string name;
  std::vector<std::size_t> shape;
};

/// A shape, for sentences: "(2, 3)".
[[nodiscard]] std::string shape_text(std::span<const std::size_t> shape);

/// What a file says of itself, by keys: {"format", "pt"}.
using TensorMetadata = std::map<std::string, std::string>;

/// What a file of tensors is known by.
struct TensorFileDigests {
  std::uint64_t bytes = 0;
  std::string file;                  ///< SHA-256 of all of them, as sha256sum prints it
  std::vector<std::string> tensors;  ///< SHA-256 of the values of each, in the order of the file
};

/// Writes a safetensors file of 32-bit floats bit by bit and digests it as it goes; it is there as
/// a whole after commit(), or not at all.
class SafetensorsWriter {
 public:
  /// Writes the header. Requires: different names, none of them "__metadata__".
  /// Throws: um::Error when the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                    const TensorMetadata& metadata = {});
  /// The same for the file `name` of `folder`, which must outlive it.
  SafetensorsWriter(const um::Folder& folder, std::string name,
                    std::span<const StoredTensor> tensors);

  /// Appends values: those of the first tensor, then those of the second, and so on.
  /// Throws: um::Error when they cannot be written.
  void append(std::span<const float> values);
  /// Waits until all is on the disk. Only take_place() may follow. Requires: as many values as the
  /// tensors have. Throws: um::Error.
  [[nodiscard]] TensorFileDigests flush();
  /// As um::ReplacedFile does. Throws: um::Error.
  void take_place() { file_.take_place(); }
  /// Requires: as many values as the tensors have. Throws: um::Error. Nothing may follow.
  void commit();

 private:
  void begin(std::span<const StoredTensor> tensors, const TensorMetadata& metadata);
  void write(std::span<const std::byte> bytes);
  void end_tensors();
  void expect_whole() const;

  um::ReplacedFile file_;
  std::vector<std::uint64_t> missing_;  // values still to come, of each tensor
  std::size_t current_ = 0;             // the tensor that comes
  Sha256 whole_;
  Sha256 tensor_;  // of what has come of the current tensor
  TensorFileDigests digests_;
};

/// A safetensors file that is open for reading. Tensors of any type may be in it.
class SafetensorsReader {
 public:
  /// Throws: um::Error that names the file when it is missing, cut off or not what it should be.
  explicit SafetensorsReader(const std::filesystem::path& path)
      : SafetensorsReader{um::InputFile{path}} {}
  /// The same of a file that is open already.
  explicit SafetensorsReader(um::InputFile file);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// In the order of the file.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// The number of the tensor of this name, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Fills `values` with those of tensor number `index`: F32, or F16 or BF16, of which each number
  /// is one of 32 bits. Throws: um::Error when the tensor has not as many, or they cannot be read
  /// or are of another type.
  void read(std::size_t index, std::span<float> values) const;

 private:
  um::InputFile file_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, std::size_t> numbers_;  // of these, by name
  std::vector<std::string> types_;                        // "F32"
  std::vector<std::uint64_t> offsets_;  // in the file, and where the last tensor ends
};

}  // namespace spillway
