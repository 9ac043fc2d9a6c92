#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "um/files/input_file.h"

namespace spillway {

/// A file as it is, or where gzip has packed it, told by its content, what it was before: this is
/// in memory, all of it.
///
/// Thread safety: any number of threads may read at once.
class UnpackedFile {
 public:
  /// Throws: um::Error when it cannot be read, or is packed and damaged or larger than 4 GiB.
  explicit UnpackedFile(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const { return is_packed_ ? content_.size() : file_.size(); }
  /// As um::InputFile does.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Of what is read, packed or not. Throws: um::Error.
  [[nodiscard]] std::string sha256() const;

 private:
  um::InputFile file_;
  bool is_packed_ = false;
  std::vector<std::byte> content_;  // where it is packed
};

}  // namespace spillway
