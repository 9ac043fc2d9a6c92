#include "src/cli/evaluate/named_files.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "src/io/data/image_files.h"
#include "um/error.h"

namespace spillway::cli {

namespace fs = std::filesystem;

std::vector<std::string> named_image_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
      throw um::system_error("cannot read " + path, ENOENT);
    }
    if (error) throw um::system_error("cannot look at " + path, error.value());
    if (status.type() == fs::file_type::directory) {
      const std::vector<std::string> inside = find_images(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else if (status.type() == fs::file_type::regular) {
      files.push_back(path);
    } else {
      throw um::Error{"cannot read " + path + ": it is neither a file nor a folder"};
    }
  }
  return files;
}

}  // namespace spillway::cli
