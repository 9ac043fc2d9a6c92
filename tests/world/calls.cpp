// Wrappers for the C library's functions that the program calls. A schedule makes calls fail, wait
// or end the process (faults.h); operations on the files of one folder are recorded (disk_log.h).
// Preloaded into the tested program.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/world/disk_log.h"
#include "tests/world/faults.h"

namespace {

using spillway::world::Call;
using spillway::world::Effect;
using spillway::world::fails;
using spillway::world::Fault;
using spillway::world::next_call;

constexpr std::size_t kBlock = 4096;    // direct I/O works in multiples of this
constexpr unsigned kMoveNumber = 0x05;  // of UFFDIO_MOVE

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Returns the descriptor's path, or an empty string.
std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  return size < 0 ? std::string{} : std::string(path.data(), static_cast<std::size_t>(size));
}

std::string path_of(int folder, const char* name) {
  if (*name == '/') return name;
  if (folder != AT_FDCWD) return path_of(folder) + "/" + name;
  std::array<char, PATH_MAX> here{};
  if (getcwd(here.data(), here.size()) == nullptr) return name;
  return std::string{here.data()} + "/" + name;
}

bool is_far(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0;
}

bool is_file(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// Returns half of the size, in whole blocks for direct I/O.
std::size_t shortened(int descriptor, std::size_t size) {
  const bool is_direct = (fcntl(descriptor, F_GETFL) & O_DIRECT) != 0;
  const std::size_t half = is_direct ? size / 2 / kBlock * kBlock : size / 2;
  return half == 0 ? size : half;
}

// The effect on a read or write of `size` bytes: the bytes to transfer, or -1 and errno.
struct Transfer {
  ssize_t size;
  bool rots = false;
};

Transfer transfer(int descriptor, std::size_t size, Call of_files, Call of_far) {
  if (!is_file(descriptor)) return {.size = static_cast<ssize_t>(size)};
  const auto fault = next_call(is_far(descriptor) ? of_far : of_files);
  if (!fault) return {.size = static_cast<ssize_t>(size)};
  if (fault->effect == Effect::kError) {
    errno = fault->value;
    return {.size = -1};
  }
  if (fault->effect == Effect::kShort) size = shortened(descriptor, size);
  return {.size = static_cast<ssize_t>(size), .rots = fault->effect == Effect::kRot};
}

template <class Read>
ssize_t read_through(int descriptor, void* bytes, std::size_t size, Read read) {
  const Transfer asked = transfer(descriptor, size, Call::kRead, Call::kFarRead);
  if (asked.size < 0) return -1;
  const ssize_t count = read(static_cast<std::size_t>(asked.size));
  if (asked.rots && count > 0) static_cast<unsigned char*>(bytes)[count / 2] ^= 0x10;
  return count;
}

// Without `place`, writes at the descriptor's current offset.
template <class Write>
ssize_t write_through(int descriptor, const void* bytes, std::size_t size,
                      std::optional<off_t> place, Write write) {
  const Transfer asked = transfer(descriptor, size, Call::kWrite, Call::kFarWrite);
  if (asked.size < 0) return -1;
  const ssize_t count = write(static_cast<std::size_t>(asked.size));
  if (count > 0 && is_file(descriptor) && !is_far(descriptor)) {
    const off_t begin = place ? *place : lseek(descriptor, 0, SEEK_CUR) - count;
    spillway::world::record_written(
        path_of(descriptor), static_cast<std::uint64_t>(begin),
        {static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count)});
  }
  return count;
}

int opened(int folder, const char* name, int flags, unsigned mode) {
  if (fails(Call::kOpen)) return -1;
  const bool may_create = (flags & O_CREAT) != 0;
  const bool was_there = may_create && faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  static const auto open_at = real<int (*)(int, const char*, int, ...)>("openat");
  const int descriptor = open_at(folder, name, flags, mode);
  if (descriptor >= 0 && may_create && !was_there) {
    spillway::world::record_created(path_of(folder, name));
  }
  if (descriptor >= 0 && was_there && (flags & O_TRUNC) != 0) {
    spillway::world::record_truncated(path_of(folder, name), 0);
  }
  return descriptor;
}

int synced(int descriptor, const char* name) {
  if (fails(Call::kSync)) return -1;
  const int result = real<int (*)(int)>(name)(descriptor);
  if (result == 0) spillway::world::record_synced(path_of(descriptor));
  return result;
}

int removed(int folder, const char* name, int flags) {
  if (fails(Call::kUnlink)) return -1;
  static const auto unlink_at = real<int (*)(int, const char*, int)>("unlinkat");
  const int result = unlink_at(folder, name, flags);
  if (result == 0 && flags == 0) spillway::world::record_removed(path_of(folder, name));
  return result;
}

int renamed(int from_folder, const char* from, int to_folder, const char* to) {
  if (fails(Call::kRename)) return -1;
  static const auto rename_at = real<int (*)(int, const char*, int, const char*)>("renameat");
  const int result = rename_at(from_folder, from, to_folder, to);
  if (result == 0) {
    spillway::world::record_renamed(path_of(from_folder, from), path_of(to_folder, to));
  }
  return result;
}

unsigned mode_of(int flags, std::va_list arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
}

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

int counted_main(int count, char** words, char** environment) {
  spillway::world::begin_counting();
  return program_main(count, words, environment);
}

}  // namespace

// Names and signatures are the C library's; programs with large files call the `...64` variants.
extern "C" {

int __libc_start_main(Main main, int count, char** words, void (*begin)(), void (*end)(),
                      void (*loader_end)(), void* stack_end) {
  program_main = main;
  const auto next = real<decltype(&__libc_start_main)>("__libc_start_main");
  return next(counted_main, count, words, begin, end, loader_end, stack_end);
}

int open(const char* name, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(AT_FDCWD, name, flags, mode);
}

int openat(int folder, const char* name, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(folder, name, flags, mode);
}

[[gnu::alias("open")]] int open64(const char* name, int flags, ...);

[[gnu::alias("openat")]] int openat64(int folder, const char* name, int flags, ...);

ssize_t read(int descriptor, void* bytes, size_t size) {
  static const auto next = real<ssize_t (*)(int, void*, size_t)>("read");
  return read_through(descriptor, bytes, size,
                      [&](std::size_t part) { return next(descriptor, bytes, part); });
}

ssize_t pread(int descriptor, void* bytes, size_t size, off_t offset) {
  static const auto next = real<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return read_through(descriptor, bytes, size,
                      [&](std::size_t part) { return next(descriptor, bytes, part, offset); });
}
[[gnu::alias("pread")]] ssize_t pread64(int descriptor, void* bytes, size_t size, off64_t offset);

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  return write_through(descriptor, bytes, size, std::nullopt,
                       [&](std::size_t part) { return next(descriptor, bytes, part); });
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return write_through(descriptor, bytes, size, offset,
                       [&](std::size_t part) { return next(descriptor, bytes, part, offset); });
}
[[gnu::alias("pwrite")]] ssize_t pwrite64(int descriptor, const void* bytes, size_t size,
                                          off64_t offset);

int fsync(int descriptor) { return synced(descriptor, "fsync"); }
int fdatasync(int descriptor) { return synced(descriptor, "fdatasync"); }

int rename(const char* from, const char* to) noexcept {
  return renamed(AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return renamed(from_folder, from, to_folder, to);
}

int unlink(const char* name) noexcept { return removed(AT_FDCWD, name, 0); }
int remove(const char* name) noexcept { return removed(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char* name, int flags) noexcept {
  return removed(folder, name, flags);
}

int posix_fallocate(int descriptor, off_t offset, off_t size) {
  if (fails(Call::kAllocate)) return errno;
  static const auto next = real<int (*)(int, off_t, off_t)>("posix_fallocate");
  return next(descriptor, offset, size);
}
[[gnu::alias("posix_fallocate")]] int posix_fallocate64(int descriptor, off64_t offset,
                                                        off64_t size);

int ftruncate(int descriptor, off_t size) noexcept {
  if (fails(Call::kAllocate)) return -1;
  static const auto next = real<int (*)(int, off_t)>("ftruncate");
  const int result = next(descriptor, size);
  if (result == 0) {
    spillway::world::record_truncated(path_of(descriptor), static_cast<std::uint64_t>(size));
  }
  return result;
}
[[gnu::alias("ftruncate")]] int ftruncate64(int descriptor, off64_t size) noexcept;

int madvise(void* address, size_t size, int advice) noexcept {
  const bool populates = advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE;
  if (spillway::world::is_of_program(__builtin_return_address(0)) &&
      fails(populates ? Call::kMap : Call::kAdvise)) {
    return -1;
  }
  static const auto next = real<int (*)(void*, size_t, int)>("madvise");
  return next(address, size, advice);
}

int ioctl(int descriptor, unsigned long request, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool moves_page = _IOC_TYPE(request) == UFFDIO && _IOC_NR(request) == kMoveNumber;
  if (moves_page && fails(Call::kMovePage)) return -1;
  static const auto next = real<int (*)(int, unsigned long, ...)>("ioctl");
  return next(descriptor, request, argument);
}

}  // extern "C"
