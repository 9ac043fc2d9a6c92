#include "um/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>
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

constexpr std::string_view kProcess = "process ";

std::string this_owner() {
  return std::string{kProcess} + std::to_string(::getpid()) + " on " + this_machine() + " since " +
         now();
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

// Whether the locked file is one that sign() wrote, or would have: a power cut may leave it empty
// or zeros in it.
bool is_ours(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || status.st_nlink > 1) return false;
  std::array<char, kProcess.size()> begin{};
  ssize_t count = 0;
  do {
    count = ::pread(descriptor, begin.data(), begin.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return false;
  const std::string_view found{begin.data(), static_cast<std::size_t>(count)};
  return begin.front() == '\0' || kProcess.starts_with(found);
}

// What kept it from being locked; 0 when it is.
int lock_now(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Whether the open file is still that of the folder. Whoever held the lock may have removed it.
bool is_in_place(int descriptor, int folder) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(descriptor, &opened) == 0 &&
         ::fstatat(folder, FolderLock::kFile, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

// For people only: a full disk takes no lock away.
void sign(int descriptor) {
  const std::string owner = this_owner() + "\n";
  while (::ftruncate(descriptor, 0) != 0) {
    if (errno != EINTR) return;
  }
  [[maybe_unused]] const ssize_t count = ::pwrite(descriptor, owner.data(), owner.size(), 0);
}

}  // namespace

FolderLock::FolderLock(const Folder& folder) {
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = open_lock(folder);
    const int failed = lock_now(descriptor_);
    if (failed == 0) continue;
    const std::string owner = owner_in(descriptor_);
    ::close(std::exchange(descriptor_, -1));
    if (failed != EWOULDBLOCK) throw system_error("cannot lock " + folder.path().string(), failed);
    throw Error{"the folder " + folder.path().string() + " is in use by " + owner +
                "; wait until that ends, or give another folder"};
  } while (!is_in_place(descriptor_, folder.descriptor()));
  if (!is_ours(descriptor_)) {
    ::close(std::exchange(descriptor_, -1));
    throw Error{"cannot lock " + folder.path().string() + ": its file " + kFile +
                " is not one of Spillway; move it elsewhere, or give another folder"};
  }
  sign(descriptor_);
  folder_ = ::fcntl(folder.descriptor(), F_DUPFD_CLOEXEC, 0);
}

FolderLock::~FolderLock() {
  if (folder_ >= 0) {
    // While nobody else can hold it.
    if (is_in_place(descriptor_, folder_)) ::unlinkat(folder_, kFile, 0);
    ::close(folder_);
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_{std::exchange(other.folder_, -1)},
      descriptor_{std::exchange(other.descriptor_, -1)} {}

}  // namespace spillway::um
