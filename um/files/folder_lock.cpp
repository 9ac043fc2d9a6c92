#include "um/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "um/error.h"

namespace spillway::um {
namespace {

std::string this_machine() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "an unknown machine";
  return name.data();
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  std::array<char, 64> text{};
  ::gmtime_r(&seconds, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

std::string this_owner() {
  return "process " + std::to_string(::getpid()) + " on " + this_machine() + " since " + now();
}

// What the owner wrote, which may be anybody's text: its first line, without control characters.
std::string owner_in(int descriptor) {
  std::array<char, 400> text{};
  const ssize_t count = ::pread(descriptor, text.data(), text.size(), 0);
  std::string line;
  for (ssize_t i = 0; i < count && text.at(static_cast<std::size_t>(i)) != '\n'; ++i) {
    const char c = text.at(static_cast<std::size_t>(i));
    if (static_cast<unsigned char>(c) >= ' ' && c != '\x7f') line += c;
  }
  return line.empty() ? "another process" : line;
}

int open_lock(const Folder& folder) {
  constexpr mode_t kMode = 0666;  // less what the umask takes
  const int descriptor =
      ::openat(folder.descriptor(), FolderLock::kFile,
               O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMode);
  const std::string path = folder.path_of(FolderLock::kFile);
  if (descriptor < 0) throw system_error("cannot write " + path, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  throw Error{"cannot write " + path + ": it is no ordinary file"};
}

}  // namespace

FolderLock::FolderLock(const Folder& folder) : descriptor_{open_lock(folder)} {
  int result = 0;
  do {
    result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    const std::string owner = this_owner() + "\n";
    // Who holds it is for people only: a full disk takes no lock away.
    if (::ftruncate(descriptor_, 0) == 0) {
      [[maybe_unused]] const ssize_t count =
          ::pwrite(descriptor_, owner.data(), owner.size(), 0);
    }
    return;
  }
  const int failed = errno;
  const std::string owner = owner_in(descriptor_);
  ::close(std::exchange(descriptor_, -1));
  if (failed != EWOULDBLOCK) throw system_error("cannot lock " + folder.path().string(), failed);
  throw Error{"the folder " + folder.path().string() + " is in use by " + owner +
              "; wait until that ends, or give another folder"};
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  [[maybe_unused]] const int result = ::ftruncate(descriptor_, 0);
  ::close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_{std::exchange(other.descriptor_, -1)} {}

}  // namespace spillway::um
