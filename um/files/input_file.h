#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace spillway::um {

/// A regular file open for reading at any offset. Refuses named pipes and devices, which could
/// block their reader for ever.
///
/// Thread safety: any number of threads may read concurrently.
class InputFile {
 public:
  /// Throws: Error that names the file when it cannot be opened or is not a regular file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns the size in bytes when the file was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `bytes` from `offset` on. Throws: Error on a read error or when the file ends early.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Returns all content, even if size() says less: a file in /proc has size 0. Throws: Error when
  /// there are more than `largest` bytes, or on a read error.
  [[nodiscard]] std::string text(std::size_t largest) const;

 private:
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace spillway::um
