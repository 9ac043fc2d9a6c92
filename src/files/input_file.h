#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace spillway {

/// A file that is open for reading at any place.
///
/// Thread safety: any number of threads may read at once.
class InputFile {
 public:
  /// Throws: um::Error that names the file when it cannot be opened or is no ordinary file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Bytes when the file was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `bytes` from `offset` on. Throws: um::Error when the file ends before, or on a read
  /// error.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace spillway
