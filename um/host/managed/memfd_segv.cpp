#include "um/host/managed/memfd_segv.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "um/error.h"
#include "um/host/managed/fatal.h"
#include "um/host/managed/page_mapper.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

/// Checks the kernel's limit of mappings: each near page and each gap behind it is one mapping.
void expect_few_mappings(const PageGeometry& geometry) {
  constexpr std::uint64_t kOthers = 4096;  // libraries, heaps and stacks of the process
  std::uint64_t limit = 0;
  if (!(std::ifstream{"/proc/sys/vm/max_map_count"} >> limit)) return;
  if (2 * std::uint64_t{geometry.slots} + kOthers <= limit) return;
  throw Error{"paging by memfd cannot map " + std::to_string(geometry.slots) + " pages of " +
              to_string(geometry.page) +
              ": the kernel's vm.max_map_count is too small; use larger pages"};
}

int make_file(const char* name) {
  const int made = memfd_create(name, MFD_CLOEXEC);
  if (made < 0) throw system_error("cannot make a file in memory", errno);
  return made;
}

}  // namespace

MemfdSegv::MemfdSegv(const PageGeometry& geometry) : page_{geometry.page.count()} {
  expect_few_mappings(geometry);
  try {
    region_ = reserve_addresses(geometry.pages * geometry.page, AddressAccess::kNone);
    nothing_ = make_file("spillway far memory");
    if (!map_nothing(0, region_.size())) {
      throw system_error("cannot map addresses for managed memory", errno);
    }
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
  descriptor_ = make_file("spillway near memory");
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
  for (const int file : {descriptor_, nothing_}) {
    if (file >= 0) close(file);
  }
}

// Keeps the page from child processes: a child would share it instead of getting a copy.
void MemfdSegv::map(PageIndex page, SlotIndex slot) noexcept {
  const auto offset = static_cast<off_t>(slot * page_);
  std::byte* const address = region_.data() + page * page_;
  if (mmap(address, page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
           descriptor_, offset) == MAP_FAILED) {
    fatal_refusal("the kernel refuses to map a page of managed memory", errno, "use larger pages");
  }
  madvise(address, page_, MADV_DONTFORK);
}

void MemfdSegv::unmap(PageIndex page, SlotIndex /*slot*/) noexcept {
  std::byte* const address = region_.data() + page * page_;
  if (msync(address, page_, MS_ASYNC) != 0 && errno == ENOMEM) fatal(kTakenAway);
  if (!map_nothing(page * page_, page_)) {
    fatal_refusal("the kernel refuses to unmap a page of managed memory", errno,
                  "use larger pages");
  }
}

// Maps the empty file at matching offsets, so that the kernel joins adjacent gaps into one mapping.
bool MemfdSegv::map_nothing(std::size_t offset, std::size_t size) const noexcept {
  return mmap(region_.data() + offset, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
              nothing_, static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace spillway::um
