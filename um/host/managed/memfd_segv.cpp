#include "um/host/managed/memfd_segv.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "um/error.h"
#include "um/host/managed/address_space.h"
#include "um/host/managed/fatal.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

/// Each near page is a mapping of its own, and so is the gap after it; the kernel has a limit.
void expect_few_mappings(const PageGeometry& geometry) {
  constexpr std::uint64_t kOthers = 4096;  // libraries, heaps and stacks of the process
  std::uint64_t limit = 0;
  if (!(std::ifstream{"/proc/sys/vm/max_map_count"} >> limit)) return;
  if (2 * std::uint64_t{geometry.slots} + kOthers <= limit) return;
  throw Error{"paging by memfd cannot map " + std::to_string(geometry.slots) + " pages of " +
              to_string(geometry.page) +
              ": the kernel's vm.max_map_count is too small; use larger pages"};
}

}  // namespace

MemfdSegv::MemfdSegv(const PageGeometry& geometry) : page_{geometry.page.count()} {
  expect_few_mappings(geometry);
  try {
    region_ = reserve_addresses(geometry.pages * geometry.page, AddressAccess::kNone);
    map_slots(geometry.slots * geometry.page);
  } catch (...) {
    release();
    throw;
  }
}

MemfdSegv::~MemfdSegv() { release(); }

void MemfdSegv::map_slots(Bytes size) {
  const auto expect_made = [size](bool is_made) {
    const int reason = errno;
    if (!is_made) throw system_error("cannot make a file in memory of " + to_string(size), reason);
  };
  descriptor_ = memfd_create("spillway near memory", MFD_CLOEXEC);
  expect_made(descriptor_ >= 0);
  while (ftruncate(descriptor_, static_cast<off_t>(size.count())) != 0) {
    expect_made(errno == EINTR);
  }
  void* const start =
      mmap(nullptr, size.count(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, /*offset=*/0);
  if (start == MAP_FAILED) {
    const int reason = errno;
    throw system_error("cannot map a file in memory of " + to_string(size), reason);
  }
  slots_ = {static_cast<std::byte*>(start), size.count()};
  madvise(start, size.count(), MADV_DONTFORK);
  touch_memory(slots_);
}

void MemfdSegv::release() noexcept {
  if (!region_.empty()) release_addresses(region_);
  unmap_memory(slots_);
  if (descriptor_ >= 0) close(descriptor_);
}

void MemfdSegv::map(PageIndex page, SlotIndex slot) noexcept {
  const auto offset = static_cast<off_t>(slot * page_);
  if (mmap(region_.data() + page * page_, page_, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED | MAP_POPULATE, descriptor_, offset) == MAP_FAILED) {
    fatal_refusal("the kernel refuses to map a page of managed memory", errno, "use larger pages");
  }
}

void MemfdSegv::unmap(PageIndex page, SlotIndex /*slot*/) noexcept {
  if (mmap(region_.data() + page * page_, page_, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, /*fd=*/-1,
           /*offset=*/0) == MAP_FAILED) {
    fatal_refusal("the kernel refuses to unmap a page of managed memory", errno,
                  "use larger pages");
  }
}

}  // namespace spillway::um
