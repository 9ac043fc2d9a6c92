#include "tests/world/disk_log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace spillway::world {
namespace {

// Precedes each record's bytes; tests/world/disk.py has the same layout.
struct [[gnu::packed]] RecordHeader {
  char kind;
  std::uint32_t path_size;
  std::uint64_t offset;
  std::uint64_t size;
};

std::string_view folder;
long log_file = -1;

[[gnu::constructor]] void open_log() {
  const char* const disk = std::getenv("SPILLWAY_WORLD_DISK");
  const char* const log = std::getenv("SPILLWAY_WORLD_LOG");
  if (disk == nullptr || log == nullptr) return;
  folder = disk;
  log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log_file < 0) {
    std::fprintf(stderr, "world: the log cannot be opened\n");
    _exit(99);
  }
}

void record(char kind, std::string_view path, std::uint64_t offset, std::string_view bytes) {
  if (log_file < 0 || !path.starts_with(folder)) return;
  RecordHeader header{.kind = kind,
                      .path_size = static_cast<std::uint32_t>(path.size()),
                      .offset = offset,
                      .size = bytes.size()};
  const std::array<iovec, 3> pieces{
      {{.iov_base = &header, .iov_len = sizeof header},
       {.iov_base = const_cast<char*>(path.data()), .iov_len = path.size()},
       {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()}}};
  const long written = syscall(SYS_writev, log_file, pieces.data(), pieces.size());
  if (written != static_cast<long>(sizeof header + path.size() + bytes.size())) _exit(99);
}

}  // namespace

void record_created(std::string_view path) noexcept { record('C', path, 0, {}); }

void record_written(std::string_view path, std::uint64_t offset,
                    std::span<const std::byte> bytes) noexcept {
  record('W', path, offset, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void record_truncated(std::string_view path, std::uint64_t size) noexcept {
  record('T', path, size, {});
}

void record_synced(std::string_view path) noexcept { record('S', path, 0, {}); }

void record_renamed(std::string_view from, std::string_view to) noexcept {
  record('R', from, 0, to);
}

void record_removed(std::string_view path) noexcept { record('U', path, 0, {}); }

}  // namespace spillway::world
