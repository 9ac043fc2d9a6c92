#undef _FORTIFY_SOURCE  // whose openat() is another function

#include "tests/src/train/power/recorded_folder.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <map>
#include <string_view>

#include "um/error.h"

namespace spillway::test {
namespace {

using Kind = FileCall::Kind;

struct Recording {
  std::string folder;
  std::vector<FileCall> calls;
  std::map<int, std::size_t> open_files;     // by descriptor
  std::map<std::string, std::size_t> names;  // as the program sees them
  std::size_t files = 0;
};

Recording* recording = nullptr;

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size < 0 ? std::string{} : std::string(path.data(), static_cast<std::size_t>(size));
}

bool is_recorded(int folder) {
  return recording != nullptr && path_of(folder) == recording->folder;
}

void note_create(int descriptor, const std::string& name) {
  recording->open_files[descriptor] = recording->files;
  recording->names[name] = recording->files;
  recording->calls.push_back({.kind = Kind::kCreate, .file = recording->files, .to = name});
  ++recording->files;
}

void note_write(int descriptor, std::string_view bytes) {
  if (recording == nullptr || !recording->open_files.contains(descriptor)) return;
  recording->calls.push_back({.kind = Kind::kWrite,
                              .file = recording->open_files.at(descriptor),
                              .bytes = std::string{bytes}});
}

void note_sync(int descriptor) {
  if (recording == nullptr) return;
  if (recording->open_files.contains(descriptor)) {
    recording->calls.push_back(
        {.kind = Kind::kSyncFile, .file = recording->open_files.at(descriptor)});
  } else if (is_recorded(descriptor)) {
    recording->calls.push_back({.kind = Kind::kSyncFolder});
  }
}

void note_rename(const std::string& from, const std::string& to) {
  const std::size_t file = recording->names.at(from);
  recording->names.erase(from);
  recording->names[to] = file;
  recording->calls.push_back({.kind = Kind::kRename, .file = file, .name = from, .to = to});
}

void note_remove(const std::string& name) {
  recording->names.erase(name);
  recording->calls.push_back({.kind = Kind::kRemove, .name = name});
}

}  // namespace

RecordedFolder::RecordedFolder(const std::string& folder) {
  um::expects(recording == nullptr, "one recording at a time");
  recording = new Recording{.folder = folder};
}

RecordedFolder::~RecordedFolder() {
  delete recording;
  recording = nullptr;
}

void RecordedFolder::acknowledge(std::uint64_t step) {
  recording->calls.push_back({.kind = Kind::kAcknowledge, .step = step});
}

const std::vector<FileCall>& RecordedFolder::calls() const { return recording->calls; }

}  // namespace spillway::test

using namespace spillway::test;

extern "C" {

int openat(int folder, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const auto descriptor = static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  const bool is_new = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  if (descriptor >= 0 && is_new && is_recorded(folder)) note_create(descriptor, path);
  return descriptor;
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  const ssize_t count = ::syscall(SYS_write, descriptor, bytes, size);
  if (count > 0) {
    note_write(descriptor, {static_cast<const char*>(bytes), static_cast<std::size_t>(count)});
  }
  return count;
}

int fsync(int descriptor) {
  const auto result = static_cast<int>(::syscall(SYS_fsync, descriptor));
  if (result == 0) note_sync(descriptor);
  return result;
}

int renameat(int old_folder, const char* from, int new_folder, const char* to) noexcept {
  const auto result =
      static_cast<int>(::syscall(SYS_renameat2, old_folder, from, new_folder, to, 0));
  if (result == 0 && is_recorded(old_folder)) note_rename(from, to);
  return result;
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
  if (result == 0 && is_recorded(folder)) note_remove(path);
  return result;
}

int close(int descriptor) {
  if (recording != nullptr) recording->open_files.erase(descriptor);
  return static_cast<int>(::syscall(SYS_close, descriptor));
}

}  // extern "C"
