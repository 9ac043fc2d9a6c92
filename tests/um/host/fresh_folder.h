#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "um/error.h"

namespace spillway::um {

/// A fresh empty folder, gone with all it holds at the end of its life.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "spillway-test-XXXXXX";
    expects(mkdtemp(name.data()) != nullptr, "a test can make a temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace spillway::um
