#include "um/host/far/far_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "um/error.h"
#include "um/host/far/far_store.h"
#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

const char* const kElsewhere = "choose another place with --far file:PATH";

fs::path nearest_folder(fs::path path) {
  std::error_code ignored;
  while (!fs::is_directory(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path.empty() ? fs::path{"."} : path;
}

// Returns whether a path that does not exist must be a folder, as "/scratch/", or "/scratch" right
// below the root, where files of one's own do not belong.
bool is_folder_meant(const fs::path& path) {
  return !path.has_filename() ||
         (path.parent_path() == path.root_path() && path.is_absolute() && !path.has_extension());
}

fs::path folder_to_hold(const fs::path& path) {
  std::error_code ignored;  // an unreadable path does not exist, or fails to open below
  if (fs::is_directory(path, ignored)) return path;
  if (fs::exists(path, ignored)) {
    throw Error{"cannot put far memory in " + path.string() +
                ", which exists; give a folder or a path that does not exist yet"};
  }
  fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path{"."};
  if (is_folder_meant(path)) folder = path;
  if (fs::is_directory(folder, ignored)) return folder;
  throw Error{"cannot put far memory in " + path.string() + ": there is no folder " +
              folder.string() + ", the nearest one is " + nearest_folder(folder).string() +
              "; make it, or " + kElsewhere};
}

int open_unnamed(const fs::path& folder) {
  int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string name = folder / "spillway-far-XXXXXX";  // some file systems have no O_TMPFILE
    descriptor = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor >= 0) unlink(name.c_str());
  }
  if (descriptor < 0) {
    const int reason = errno;
    throw system_error("cannot make a file for far memory in " + folder.string(), reason);
  }
  return descriptor;
}

bool is_on_disk(const fs::path& folder) {
  struct statfs info {};
  if (statfs(folder.c_str(), &info) != 0) return false;
  return info.f_type != TMPFS_MAGIC && info.f_type != RAMFS_MAGIC;
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

constexpr BackOff::Pauses kTransferWaits{
    .first = milliseconds{1}, .longest = milliseconds{500}, .total = std::chrono::seconds{3}};

bool may_pass(int reason) {
  return reason == EIO || reason == EAGAIN || reason == ENOMEM || reason == EBUSY ||
         reason == ETIMEDOUT;
}

/// Moves `size` bytes to or from the file at `at` by calling `move_some(moved)`, which returns like
/// pread(). Returns 0 or an errno; `at` is then where it stopped. Sets `was_in_vain` after a futile
/// wait and never waits again: many accesses may be queued when a disk fails.
template <typename MoveSome>
int move_all(std::size_t size, Bytes& at, const std::function<void(Nanoseconds)>& pause,
             std::atomic<bool>& was_in_vain, const MoveSome& move_some) {
  BackOff waits{kTransferWaits};
  for (std::size_t left = size; left > 0;) {
    const ssize_t moved = move_some(size - left);
    if (moved > 0) {
      left -= static_cast<std::size_t>(moved);
      at += Bytes{static_cast<std::uint64_t>(moved)};
      continue;
    }
    const int reason = moved < 0 ? errno : EIO;  // zero: the file was truncated or is full
    if (reason == EINTR) continue;
    if (!may_pass(reason) || was_in_vain) return reason;
    const std::optional<Nanoseconds> wait = waits.next();
    if (!wait) {
      was_in_vain = true;
      return reason;
    }
    pause(*wait);
  }
  return 0;
}

Error failure_of(const char* deed, const FarFile& file, Bytes at, int reason) {
  return system_error(std::string{"cannot "} + deed + " far memory in " + file.folder().string() +
                          ", at byte " + std::to_string(at.count()) + " of its file",
                      reason);
}

}  // namespace

fs::path find_far_folder(Bytes size) {
  const char* const temporary = std::getenv("TMPDIR");
  std::string tried;
  for (const std::string folder : {temporary == nullptr ? "" : temporary, "/var/tmp", "."}) {
    if (folder.empty()) continue;
    tried += (tried.empty() ? "" : ", ") + folder;
    if (!is_on_disk(folder)) continue;
    try {
      const UnnamedFile probe{folder, Bytes{}};
      if (free_room(probe.descriptor()) >= size) return fs::absolute(folder).lexically_normal();
    } catch (const Error&) {
      continue;  // not ours to write
    }
  }
  throw Error{"RAM has no room for " + to_string(size) + " of far memory, nor has a disk at " +
              tried + "; give --far file:PATH elsewhere, or a network or batch that needs less"};
}

UnnamedFile::UnnamedFile(const fs::path& path, Bytes size)
    : folder_{folder_to_hold(path)}, descriptor_{open_unnamed(folder_)} {
  try {
    take_room(descriptor_, folder_, size);
  } catch (...) {
    close(descriptor_);
    throw;
  }
  is_direct_ = try_direct(descriptor_);
}

UnnamedFile::~UnnamedFile() { close(descriptor_); }

FarFile::FarFile(const std::filesystem::path& path, Bytes size, FarCalls calls)
    : calls_{std::move(calls)}, file_{path, size}, size_{size} {}

void FarFile::read(Bytes offset, std::span<std::byte> to) {
  expect_far_access(size_, offset, to);
  Bytes at = offset;
  const int reason = move_all(to.size(), at, calls_.pause, was_in_vain_, [&](std::size_t moved) {
    const std::span<std::byte> rest = to.subspan(moved);
    return calls_.pread(file_.descriptor(), rest.data(), rest.size(),
                        static_cast<off_t>(at.count()));
  });
  if (reason != 0) throw failure_of("read", *this, at, reason);
}

void FarFile::write(Bytes offset, std::span<const std::byte> from) {
  expect_far_access(size_, offset, from);
  Bytes at = offset;
  const int reason = move_all(from.size(), at, calls_.pause, was_in_vain_, [&](std::size_t moved) {
    const std::span<const std::byte> rest = from.subspan(moved);
    return calls_.pwrite(file_.descriptor(), rest.data(), rest.size(),
                         static_cast<off_t>(at.count()));
  });
  if (reason != 0) throw failure_of("write", *this, at, reason);
}

std::string FarFile::description() const {
  return "file in " + file_.folder().string() +
         (file_.is_direct() ? ", direct I/O" : ", through the page cache");
}

}  // namespace spillway::um
