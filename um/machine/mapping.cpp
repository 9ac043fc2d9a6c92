#include "um/machine/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "um/error.h"

namespace spillway::um {
namespace {

constexpr Bytes kPage = 4_KiB;
constexpr Bytes kHugePage = 2_MiB;

OutOfMemory no_memory(Bytes size, int errno_value) {
  return OutOfMemory{"the system gives no " + to_string(size) +
                     " of memory: " + std::generic_category().message(errno_value)};
}

/// Unmaps everything before the first huge page and everything behind `size` bytes from there.
std::byte* trim_to_huge_page(std::byte* start, std::size_t mapped, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t before = (kHugePage.count() - address % kHugePage.count()) % kHugePage.count();
  if (before > 0) munmap(start, before);
  const std::size_t after = mapped - before - size;
  if (after > 0) munmap(start + before + size, after);
  return start + before;
}

#ifdef MADV_POPULATE_WRITE
/// Gives all pages their memory at once. Returns false on a Linux older than 5.14. Throws:
/// OutOfMemory.
bool populate(std::byte* start, Bytes size) {
  while (madvise(start, size.count(), MADV_POPULATE_WRITE) != 0) {
    if (errno == EINVAL) return false;
    if (errno != EINTR) throw no_memory(size, errno);
  }
  return true;
}
#endif

}  // namespace

Range map_memory(Bytes size) {
  if (size == Bytes{}) return {};
  const bool is_huge = size >= kHugePage;
  const Bytes rounded = round_up(size, kPage);
  const Bytes mapped = rounded + (is_huge ? kHugePage : Bytes{});
  void* const start = mmap(nullptr, mapped.count(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  if (start == MAP_FAILED) throw no_memory(size, errno);
  auto* address = static_cast<std::byte*>(start);
  if (is_huge) address = trim_to_huge_page(address, mapped.count(), rounded.count());
  // Refused advice costs speed, not correctness.
  if (is_huge) madvise(address, rounded.count(), MADV_HUGEPAGE);
  madvise(address, rounded.count(), MADV_DONTFORK);
  return {address, size.count()};
}

void touch_memory(Range memory) {
  if (memory.empty()) return;
  const Bytes rounded = round_up(Bytes{memory.size()}, kPage);
#ifdef MADV_POPULATE_WRITE
  if (populate(memory.data(), rounded)) return;
#endif
  for (std::size_t at = 0; at < memory.size(); at += kPage.count()) {
    *static_cast<volatile std::byte*>(&memory[at]) = std::byte{0};
  }
}

void unmap_memory(Range memory) noexcept {
  if (!memory.empty()) munmap(memory.data(), round_up(Bytes{memory.size()}, kPage).count());
}

}  // namespace spillway::um
