#include "um/host/managed/page_mapper.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "um/error.h"
#include "um/host/managed/memfd_segv.h"
#include "um/host/managed/uffd_move.h"

namespace spillway::um {

std::unique_ptr<PageMapper> make_page_mapper(Paging paging, const PageGeometry& geometry) {
  if (paging == Paging::kMemfdSegv) return std::make_unique<MemfdSegv>(geometry);
  const std::optional<std::string> reason = probe_uffd_move();
  if (!reason) return std::make_unique<UffdMove>(geometry);
  if (paging == Paging::kAuto) return std::make_unique<MemfdSegv>(geometry);
  throw Error{"paging by uffd_move is not available: " + *reason + "; use --paging memfd"};
}

namespace {

constexpr std::uintptr_t kAlignment = (2_MiB).count();

}  // namespace

Range reserve_addresses(Bytes size, AddressAccess access) {
  const int protection = access == AddressAccess::kNone ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* const start = mmap(nullptr, size.count() + kAlignment, protection,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  if (start == MAP_FAILED) {
    throw system_error("cannot reserve " + to_string(size) + " of addresses for managed memory",
                       errno);
  }
  auto* const mapped = static_cast<std::byte*>(start);
  const std::uintptr_t before =
      (kAlignment - reinterpret_cast<std::uintptr_t>(start) % kAlignment) % kAlignment;
  std::byte* const address = mapped + before;
  if (before > 0) munmap(mapped, before);
  munmap(address + size.count(), kAlignment - before);
  // kNone addresses stay unmarked. Pages mapped and unmapped there return without the mark, and the
  // kernel joins only mappings with equal marks.
  if (access == AddressAccess::kReadWrite) madvise(address, size.count(), MADV_DONTFORK);
  return {address, size.count()};
}

void release_addresses(Range addresses) noexcept { munmap(addresses.data(), addresses.size()); }

}  // namespace spillway::um
