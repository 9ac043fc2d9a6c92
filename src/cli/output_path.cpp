#include "src/cli/output_path.h"

#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include "src/replaced_file.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

// Innermost first.
std::vector<fs::path> missing_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;  // what cannot be looked at cannot be made either, which is noticed then
  for (fs::path at = folder; !at.empty() && !fs::exists(at, ignored); at = at.parent_path()) {
    missing.push_back(at);
  }
  return missing;
}

}  // namespace

void expect_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code ignored;
  const bool is_new = !fs::exists(path, ignored);
  std::ofstream file{path, std::ios::app};
  if (!file) throw um::system_error("cannot write " + path, errno);
  file.close();
  if (is_new) fs::remove(path, ignored);
}

void expect_writable_folder(const fs::path& folder) {
  const std::vector<fs::path> missing = missing_folders(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw um::system_error("cannot make the folder " + folder.string(), error.value());
  { const ReplacedFile probe{folder / "probe"}; }
  for (const fs::path& made : missing) fs::remove(made, error);
}

}  // namespace spillway::cli
