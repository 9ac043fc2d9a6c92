#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace spillway::um {

/// An ordinary file that is open for reading at any place. A named pipe or a device, which could
/// keep its reader waiting for ever, is refused at once.
///
/// Thread safety: any number of threads may read at once.
class InputFile {
 public:
  /// Throws: Error that names the file when it cannot be opened or is no ordinary file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Bytes when the file was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `bytes` from `offset` on. Throws: Error when the file ends before, or on a read error.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// All that the file holds, whatever size() says: that of a file in /proc is 0.
  /// Throws: Error when that is more than `largest` bytes, or on a read error.
  [[nodiscard]] std::string text(std::size_t largest) const;

 private:
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace spillway::um
