#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace spillway {

/// A file that is written beside the one it replaces and takes its place as a whole: whoever opens
/// the path, even after a power cut, finds the old content or the new.
class ReplacedFile {
 public:
  /// Opens "`path`.partial". Throws: um::Error when it cannot be made.
  explicit ReplacedFile(std::filesystem::path path);
  /// Removes the partial file unless it was committed.
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ReplacedFile(ReplacedFile&&) = delete;
  ReplacedFile& operator=(ReplacedFile&&) = delete;

  /// Appends. Throws: um::Error, for example when the disk is full.
  void write(std::span<const std::byte> bytes);
  /// Waits until all is on the disk and gives the file its name. Nothing may follow.
  void commit();

 private:
  void close_descriptor();

  std::filesystem::path path_;
  std::filesystem::path partial_;
  int descriptor_ = -1;
  bool is_committed_ = false;
};

}  // namespace spillway
