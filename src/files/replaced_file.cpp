#include "src/files/replaced_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "um/error.h"

namespace spillway {
namespace {

// A rename is on the disk when its folder is.
void sync_folder(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw um::system_error("cannot open folder " + folder.string(), errno);
  const int failed = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (failed != 0) throw um::system_error("cannot write folder " + folder.string(), failed);
}

}  // namespace

ReplacedFile::ReplacedFile(std::filesystem::path path)
    : path_{std::move(path)}, partial_{path_.string() + ".partial"} {
  constexpr mode_t kMode = 0666;
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (descriptor_ < 0) throw um::system_error("cannot create " + partial_.string(), errno);
}

ReplacedFile::~ReplacedFile() {
  close_descriptor();
  if (!is_committed_) ::unlink(partial_.c_str());
}

void ReplacedFile::close_descriptor() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void ReplacedFile::write(std::span<const std::byte> bytes) {
  um::expects(descriptor_ >= 0, "a file that is not committed");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw um::system_error("cannot write " + partial_.string(), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void ReplacedFile::commit() {
  um::expects(descriptor_ >= 0, "a file that is not committed");
  if (::fsync(descriptor_) != 0) throw um::system_error("cannot write " + partial_.string(), errno);
  close_descriptor();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) {
    throw um::system_error("cannot rename " + partial_.string() + " to " + path_.string(), errno);
  }
  is_committed_ = true;
  sync_folder(path_);
}

}  // namespace spillway
