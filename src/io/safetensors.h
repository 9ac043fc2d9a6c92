#pragma once

#include <algorithm>
#include <cmath>
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

#include "src/io/file_digest.h"
#include "um/files/folder.h"
#include "um/files/input_file.h"
#include "um/files/replaced_file.h"

namespace spillway {

/// An array of numbers in a safetensors file (github.com/huggingface/safetensors), row-major.
struct StoredTensor {
  std::string name;
  std::vector<std::size_t> shape;
};

/// Returns a shape as text: "(2, 3)".
[[nodiscard]] std::string shape_text(std::span<const std::size_t> shape);

/// Metadata of a file, by key: {"format", "pt"}.
using TensorMetadata = std::map<std::string, std::string>;

/// Digests that identify a file of tensors.
struct TensorFileDigests {
  std::uint64_t bytes = 0;
  std::string file;                  ///< SHA-256 of the file, as sha256sum prints it
  std::vector<std::string> tensors;  ///< SHA-256 of each tensor's values, in the file's order
};

/// Writes a safetensors file of 32-bit floats piece by piece and digests it meanwhile. The file
/// appears as a whole at commit(), or not at all.
class SafetensorsWriter {
 public:
  /// Writes the header. Requires: different names, none of them "__metadata__".
  /// Throws: um::Error when the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                    const TensorMetadata& metadata = {});
  /// Does the same for the file `name` of `folder`, which must outlive the writer.
  SafetensorsWriter(const um::Folder& folder, std::string name,
                    std::span<const StoredTensor> tensors);

  /// Appends values: all of the first tensor, then all of the second, and so on.
  /// Throws: um::Error when they cannot be written.
  void append(std::span<const float> values);
  /// Waits until all data are on the disk. Only take_place() may follow. Requires: all values of
  /// all tensors have been appended. Throws: um::Error.
  [[nodiscard]] TensorFileDigests flush();
  /// Does as um::ReplacedFile::take_place(). Throws: um::Error.
  void take_place() { file_.take_place(); }
  /// Publishes the file; no other call may follow. Requires: all values of all tensors have been
  /// appended. Throws: um::Error.
  void commit();

 private:
  void begin(std::span<const StoredTensor> tensors, const TensorMetadata& metadata);
  void write(std::span<const std::byte> bytes);
  void end_tensors();
  void expect_whole() const;

  um::ReplacedFile file_;
  std::vector<std::uint64_t> missing_;  // values still to come, by tensor
  std::size_t current_ = 0;             // the tensor of the next value
  Sha256 whole_;
  Sha256 tensor_;  // of the values of the current tensor so far
  TensorFileDigests digests_;
};

/// A safetensors file that is open for reading. It may have tensors of any type.
class SafetensorsReader {
 public:
  /// Throws: um::Error that names the file when it is missing, cut off or malformed.
  explicit SafetensorsReader(const std::filesystem::path& path)
      : SafetensorsReader{um::InputFile{path}} {}
  /// Reads a file that is open already.
  explicit SafetensorsReader(um::InputFile file);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// Tensors in the file's order.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Returns the index of the tensor `name`, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Reads the values of tensor `index`, F32, F16 or BF16, as 32-bit floats. Throws: um::Error when
  /// the tensor has another number of values or another type, or cannot be read.
  void read(std::size_t index, std::span<float> values) const;

 private:
  um::InputFile file_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, std::size_t> numbers_;  // indices by name
  std::vector<std::string> types_;                        // "F32"
  std::vector<std::uint64_t> offsets_;  // in the file; one more for the end of the last tensor
};

/// The message about a tensor with a number that is not finite.
inline constexpr const char* kNotFinite = "holds a number that is not finite";

[[nodiscard]] inline bool is_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

}  // namespace spillway
