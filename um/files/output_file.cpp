#include "um/files/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include "um/error.h"
#include "um/files/folder.h"
#include "um/files/replaced_file.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

// Overwrites what is at `path`.
void write_into(const std::string& path, std::string_view text) {
  const auto failed = [&](int error) { return system_error("cannot write " + path, error); };
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) throw failed(errno);
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error != 0) throw failed(error);
}

// Whether what is at `path` can be replaced by a new file beside it. The folder is opened for that,
// which takes the right to read it.
bool is_replaceable(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) return true;
  return fs::is_regular_file(status) && ::access(parent_of(path).c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

fs::path place_of(const fs::path& path) {
  constexpr int kLinksFollowed = 40;  // as many as Linux follows
  std::error_code error;
  fs::path place = path;
  for (int links = 0; links < kLinksFollowed && fs::is_symlink(place, error); ++links) {
    place = place.parent_path() / fs::read_symlink(place, error);
  }
  return place;
}

void write_output(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  // Before any link is followed: that of a pipe in /proc leads to no path.
  if (fs::exists(there) && !fs::is_regular_file(there)) return write_into(path, text);
  const fs::path place = place_of(path);
  if (!is_replaceable(place)) return write_into(path, text);
  ReplacedFile file{place};
  file.write(std::as_bytes(std::span{text}));
  file.commit();
}

}  // namespace spillway::um
