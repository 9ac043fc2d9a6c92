#include "um/files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "um/error.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

}  // namespace

Folder::Folder(fs::path path) : path_{std::move(path)} {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) throw system_error("cannot open the folder " + path_.string(), errno);
}

// A folder is on the disk when the one that it lies in is.
Folder Folder::make(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> made;
  for (fs::path at = path; !at.empty() && !fs::exists(at, error) && !error; at = at.parent_path()) {
    made.push_back(at);
  }
  fs::create_directories(path, error);
  if (error) throw system_error("cannot make the folder " + path.string(), error.value());
  for (const fs::path& folder : made) Folder{parent_of(folder)}.sync();
  return Folder{path};
}

Folder::~Folder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Folder::Folder(Folder&& other) noexcept
    : path_{std::move(other.path_)}, descriptor_{std::exchange(other.descriptor_, -1)} {}

std::string Folder::path_of(const std::string& name) const { return (path_ / name).string(); }

std::vector<std::string> Folder::names() const {
  const int own = ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) throw system_error("cannot read the folder " + path_.string(), errno);
  const std::unique_ptr<DIR, CloseStream> stream{::fdopendir(own)};
  if (!stream) {
    const int failed = errno;
    ::close(own);
    throw system_error("cannot read the folder " + path_.string(), failed);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(stream.get())) {
    std::string name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) throw system_error("cannot read the folder " + path_.string(), errno);
  return names;
}

void Folder::remove(const std::string& name) const {
  if (::unlinkat(descriptor_, name.c_str(), 0) == 0 || errno == ENOENT) return;
  throw system_error("cannot remove " + path_of(name), errno);
}

void Folder::sync() const {
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) throw system_error("cannot write the folder " + path_.string(), errno);
  }
}

bool is_file_name(std::string_view name) {
  constexpr std::string_view kNeverInNames{"/\0", 2};
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kNeverInNames) == std::string_view::npos;
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path{"."};
}

}  // namespace spillway::um
