#include "src/cli/flags/output_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>
#include <system_error>
#include <vector>

#include "um/error.h"
#include "um/files/replaced_file.h"

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

// Makes the file that is not there, and removes only what it made.
void expect_makeable(const fs::path& path) {
  const fs::path place = um::place_of(path);
  constexpr mode_t kMode = 0666;
  const int descriptor = ::open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (descriptor < 0) throw um::system_error("cannot write " + path.string(), errno);
  ::close(descriptor);
  ::unlink(place.c_str());
}

std::string both_to_standard_output(const std::string& a, const std::string& b) {
  return a + " and " + b + " cannot both write to standard output; give one of them a file";
}

}  // namespace

void expect_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) return expect_makeable(path);
  if (fs::is_directory(status)) throw um::system_error("cannot write " + path, EISDIR);
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
    throw um::system_error("cannot write " + path, errno);
  }
}

void write_text(const std::string& text, const std::string& path) {
  if (path != "-") return um::write_output(path, text);
  std::cout << text << std::flush;
  if (!std::cout) throw um::Error{"cannot write to standard output"};
}

void expect_one_standard_output(std::initializer_list<NamedOutput> outputs) {
  std::string first;
  for (const auto& [flag, path] : outputs) {
    if (path != "-") continue;
    if (!first.empty()) {
      throw CLI::ValidationError{both_to_standard_output(first, flag)};
    }
    first = flag;
  }
}

void expect_writable_folder(const fs::path& folder) {
  const std::vector<fs::path> missing = missing_folders(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw um::system_error("cannot make the folder " + folder.string(), error.value());
  { const um::ReplacedFile probe{folder / "probe"}; }
  for (const fs::path& made : missing) fs::remove(made, error);
}

}  // namespace spillway::cli
