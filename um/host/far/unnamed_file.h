#pragma once

#include <filesystem>

#include "um/bytes.h"

namespace spillway::um {

/// An open file of fixed size with reserved disk space and no name. It disappears when it is closed
/// or the process ends. Uses direct I/O if the file system supports it.
class UnnamedFile {
 public:
  /// `path` is a folder, or does not exist yet and names a place in a folder. Throws: Error that
  /// names the path and the problem, or how much space is missing.
  UnnamedFile(const std::filesystem::path& path, Bytes size);
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] bool is_direct() const { return is_direct_; }

 private:
  std::filesystem::path folder_;
  int descriptor_;
  bool is_direct_ = false;
};

}  // namespace spillway::um
