#include "um/files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "um/error.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

constexpr std::string_view kProcess = "process ";

std::string this_owner() {
  std::array<char, 256> machine{};
  const bool is_known = ::gethostname(machine.data(), machine.size() - 1) == 0;
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  std::array<char, 64> now{};
  ::gmtime_r(&seconds, &parts);
  std::strftime(now.data(), now.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return std::string{kProcess} + std::to_string(::getpid()) + " on " +
         (is_known ? machine.data() : "an unknown machine") + " since " + now.data();
}

// Returns the owner's text, which is not trusted: its first line without control characters.
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
  constexpr mode_t kMode = 0666;  // less the umask
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

// Returns whether sign() wrote the locked file, or would have: a power cut may leave it empty or
// full of zeros.
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

// Tries to lock the file. Returns 0 or an errno.
int lock_now(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Returns whether the open file is still in the folder. A former owner of the lock may have removed
// it.
bool is_in_place(int descriptor, int folder) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(descriptor, &opened) == 0 &&
         ::fstatat(folder, FolderLock::kFile, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

// Writes the owner for people only: a full disk must not lose the lock.
void sign(int descriptor) {
  const std::string owner = this_owner() + "\n";
  while (::ftruncate(descriptor, 0) != 0) {
    if (errno != EINTR) return;
  }
  [[maybe_unused]] const ssize_t count = ::pwrite(descriptor, owner.data(), owner.size(), 0);
}

}  // namespace

Folder::Folder(fs::path path) : path_{std::move(path)} {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) throw system_error("cannot open the folder " + path_.string(), errno);
}

// A new folder is durable once its parent folder is synced.
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
    // Removes the file while this process still holds the lock.
    if (is_in_place(descriptor_, folder_)) ::unlinkat(folder_, kFile, 0);
    ::close(folder_);
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_{std::exchange(other.folder_, -1)},
      descriptor_{std::exchange(other.descriptor_, -1)} {}

}  // namespace spillway::um
