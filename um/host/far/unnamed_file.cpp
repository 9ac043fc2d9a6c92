#include "um/host/far/unnamed_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>

#include "um/error.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

const char* const kElsewhere = "choose another place with --far file:PATH";

fs::path folder_of(const fs::path& path) {
  std::error_code ignored;  // an unreadable path does not exist, or fails to open below
  if (fs::is_directory(path, ignored)) return path;
  if (fs::exists(path, ignored)) {
    throw Error{"cannot put far memory in " + path.string() +
                ", which exists; give a folder or a path that does not exist yet"};
  }
  fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path{"."};
  if (fs::is_directory(folder, ignored)) return folder;
  throw Error{"cannot put far memory in " + path.string() + ": there is no folder " +
              folder.string() + "; " + kElsewhere};
}

int open_named_and_unlink(const fs::path& folder) {
  std::string name = folder / "spillway-far-XXXXXX";
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor >= 0) unlink(name.c_str());
  return descriptor;
}

int open_unnamed(const fs::path& folder) {
  int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    descriptor = open_named_and_unlink(folder);  // some file systems have no O_TMPFILE
  }
  if (descriptor < 0) {
    const int reason = errno;
    throw system_error("cannot make a file for far memory in " + folder.string(), reason);
  }
  return descriptor;
}

Bytes free_room(int descriptor) {
  struct statvfs info {};
  if (fstatvfs(descriptor, &info) != 0) return Bytes{};
  return static_cast<std::uint64_t>(info.f_bavail) * Bytes{info.f_frsize};
}

/// Checks the free space first, so that a request too large for the disk does not fill it.
void take_room(int descriptor, const fs::path& folder, Bytes size) {
  if (size == Bytes{}) return;
  const Bytes free = free_room(descriptor);
  int failure = size > free ? ENOSPC : EINTR;
  while (failure == EINTR) {
    failure = posix_fallocate(descriptor, 0, static_cast<off_t>(size.count()));
  }
  if (failure == 0) return;
  const std::string what =
      "cannot put " + to_string(size) + " of far memory in " + folder.string() + ": ";
  if (failure == ENOSPC) {
    throw Error{what + to_string(free) + " are free there; " + kElsewhere};
  }
  throw Error{what + std::generic_category().message(failure) + "; " + kElsewhere};
}

/// Tries a read, since some file systems accept the flag and then refuse to read.
bool try_direct(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (fcntl(descriptor, F_SETFL, flags | O_DIRECT) != 0) return false;
  alignas(4096) std::array<std::byte, 4096> trial{};
  if (pread(descriptor, trial.data(), trial.size(), 0) >= 0) return true;
  fcntl(descriptor, F_SETFL, flags);
  return false;
}

}  // namespace

UnnamedFile::UnnamedFile(const fs::path& path, Bytes size)
    : folder_{folder_of(path)}, descriptor_{open_unnamed(folder_)} {
  try {
    take_room(descriptor_, folder_, size);
  } catch (...) {
    close(descriptor_);
    throw;
  }
  is_direct_ = try_direct(descriptor_);
}

UnnamedFile::~UnnamedFile() { close(descriptor_); }

}  // namespace spillway::um
