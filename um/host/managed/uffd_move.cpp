#include "um/host/managed/uffd_move.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "um/error.h"
#include "um/host/managed/address_space.h"
#include "um/host/managed/fatal.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

// From Linux 6.8's linux/userfaultfd.h; Debian 12 has the headers of 6.1.
constexpr std::uint64_t kFeatureMove = 1U << 16U;
struct UffdioMove {
  std::uint64_t dst;
  std::uint64_t src;
  std::uint64_t len;
  std::uint64_t mode;
  std::int64_t move;  // bytes moved, or a negative errno
};
const unsigned long kUffdioMove = _IOWR(UFFDIO, 0x05, UffdioMove);

// For a page that the kernel holds, or while an mremap() of the program waits for the reader of its
// event: it says EBUSY or EAGAIN, most often for microseconds.
constexpr BackOff::Pauses kWaits{.first = std::chrono::microseconds{10},
                                 .longest = std::chrono::milliseconds{10},
                                 .total = std::chrono::seconds{10}};

constexpr std::string_view kLasting = "this has lasted 10 s; try paging by memfd";

constexpr std::size_t kSmallPage = (4_KiB).count();  // the processor's
constexpr std::size_t kLargestPage = (2_MiB).count();

bool is_for_the_moment(int reason) { return reason == EAGAIN || reason == EBUSY; }

std::uint64_t number_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

UffdMove::UffdMove(const PageGeometry& geometry, UffdCalls calls)
    : calls_{std::move(calls)}, page_{geometry.page.count()} {
  try {
    open();
    region_ = reserve_addresses(geometry.pages * geometry.page, AddressAccess::kReadWrite);
    slots_ = map_memory(geometry.slots * geometry.page);
    prepare();
  } catch (...) {
    release();
    throw;
  }
}

UffdMove::~UffdMove() { release(); }

void UffdMove::release() noexcept {
  remaps_.reset();
  if (descriptor_ >= 0) close(descriptor_);
  if (!region_.empty()) release_addresses(region_);
  unmap_memory(slots_);
}

void UffdMove::open() {
  descriptor_ =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  if (descriptor_ < 0) throw system_error("the system refuses userfaultfd", errno);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_EVENT_REMAP | kFeatureMove;
  if (calls_.ioctl(descriptor_, UFFDIO_API, &api) != 0) {
    throw Error{"the kernel has no UFFDIO_MOVE, which came with Linux 6.8"};
  }
  remaps_.emplace(descriptor_);
}

void UffdMove::prepare() {
  // With pages smaller than huge ones the kernel must not join them to huge ones: a move of a part
  // would have to split it again.
  const int advice = Bytes{page_} < 2_MiB ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
  madvise(region_.data(), region_.size(), advice);
  madvise(slots_.data(), slots_.size(), advice);
  touch_memory(slots_);
  register_range(region_);
  register_range(slots_);  // a touch of a slot that is mapped as a page is caught, too
  const int there = move(region_.data(), slots_.data());
  const int back = there == 0 ? move(slots_.data(), region_.data()) : there;
  if (back != 0) throw system_error("the kernel refuses to move a page by UFFDIO_MOVE", back);
}

void UffdMove::register_range(Range range) const {
  uffdio_register request{};
  request.range = {.start = number_of(range.data()), .len = range.size()};
  request.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (calls_.ioctl(descriptor_, UFFDIO_REGISTER, &request) != 0) {
    throw system_error("the kernel refuses to watch memory for missing pages", errno);
  }
}

// Linux 6.18 miscounts where it compacts memory meanwhile: it moves small pages, says that it moved
// fewer, or none, and finds them in its way when it is asked for the rest. What it moved has left
// its source and is at its destination, where nothing was before.
std::size_t UffdMove::skip_moved(const std::byte* to, const std::byte* from,
                                 std::size_t moved) const noexcept {
  std::array<unsigned char, kLargestPage / kSmallPage> there{};
  std::array<unsigned char, kLargestPage / kSmallPage> left{};
  const auto look = [&](const std::byte* memory, auto& resident) {
    return mincore(const_cast<std::byte*>(memory), page_, resident.data()) == 0;
  };
  if (!look(to, there) || !look(from, left)) return moved;
  const auto has_moved = [&](std::size_t small) {
    return (there[small] & 1U) != 0 && (left[small] & 1U) == 0;
  };
  while (moved < page_ && has_moved(moved / kSmallPage)) moved += kSmallPage;
  return moved;
}

int UffdMove::fill(std::byte* small_page, BackOff& waits) const noexcept {
  alignas(kSmallPage) static constexpr std::array<std::byte, kSmallPage> kZeros{};
  for (;;) {
    uffdio_copy request{.dst = number_of(small_page),
                        .src = number_of(kZeros.data()),
                        .len = kSmallPage,
                        .mode = 0,
                        .copy = 0};
    if (calls_.ioctl(descriptor_, UFFDIO_COPY, &request) == 0) return 0;
    const int reason = errno;
    const std::optional<Nanoseconds> wait = is_for_the_moment(reason) ? waits.next() : std::nullopt;
    if (!wait) return reason;
    calls_.pause(*wait);
  }
}

bool UffdMove::mend(PageIndex page) noexcept {
  BackOff waits{kWaits};
  bool is_mended = false;
  for (std::size_t at = 0; at < page_; at += kSmallPage) {
    const int reason = fill(address(page) + at, waits);
    if (reason == 0) is_mended = true;
    if (is_for_the_moment(reason)) {
      fatal_refusal("the kernel refuses to fill a page of managed memory", reason, kLasting);
    }
  }
  return is_mended;
}

// The kernel moves only between memory that is accessible and locked alike.
void UffdMove::make_alike(std::byte* one, std::byte* other) const noexcept {
  for (std::byte* const each : {one, other}) {
    mprotect(each, page_, PROT_READ | PROT_WRITE);
    syscall(SYS_munlock, each, page_);  // the system's own: a sanitizer's does nothing
  }
}

// The kernel moves only what is one process's alone: a child may have it, too, where the program
// has undone MADV_DONTFORK.
void UffdMove::unshare([[maybe_unused]] std::byte* page) const noexcept {
#ifdef MADV_POPULATE_WRITE
  madvise(page, page_, MADV_POPULATE_WRITE);
#endif
}

int UffdMove::move(std::byte* to, std::byte* from) const noexcept {
  BackOff waits{kWaits};
  std::size_t most = page_;  // at a time: where the program has had parts mapped in other ways, one
  bool is_made_alike = false;
  for (std::size_t moved = 0; moved < page_;) {
    UffdioMove request{.dst = number_of(to) + moved,
                       .src = number_of(from) + moved,
                       .len = std::min(most, page_ - moved),
                       .mode = 0,
                       .move = 0};
    if (calls_.ioctl(descriptor_, kUffdioMove, &request) == 0) {
      moved += request.len;
      continue;
    }
    const int reason = errno;
    if (reason == EEXIST || reason == ENOENT) {
      const std::size_t there = skip_moved(to, from, moved);
      if (there == moved) {
        const int refusal = reason == ENOENT ? fill(from + moved, waits) : reason;
        if (is_for_the_moment(refusal)) return refusal;
        if (refusal != 0) return reason;
      }
      moved = there;
      continue;
    }
    if (reason == EINVAL && most == page_) {
      if (is_made_alike) most = kSmallPage;
      make_alike(to, from);
      is_made_alike = true;
      continue;
    }
    if (!is_for_the_moment(reason)) return reason;
    if (request.move > 0) {  // a part of the page: the rest at once
      moved += static_cast<std::size_t>(request.move);
      continue;
    }
    if (reason == EBUSY) unshare(from);
    const std::optional<Nanoseconds> wait = waits.next();
    if (!wait) return reason;
    calls_.pause(*wait);
  }
  return 0;
}

void UffdMove::map(PageIndex page, SlotIndex slot) noexcept {
  move_or_die(address(page), this->slot(slot).data());
}

void UffdMove::unmap(PageIndex page, SlotIndex slot) noexcept {
  move_or_die(this->slot(slot).data(), address(page));
}

void UffdMove::remap(PageIndex from, PageIndex to, SlotIndex /*slot*/) noexcept {
  move_or_die(address(to), address(from));
}

void UffdMove::move_or_die(std::byte* to, std::byte* from) const noexcept {
  const int reason = move(to, from);
  if (reason == ENOENT) fatal(kTakenAway);
  if (reason != 0) {
    fatal_refusal("the kernel refuses to move a page of managed memory", reason,
                  is_for_the_moment(reason) ? kLasting : "try paging by memfd");
  }
}

}  // namespace spillway::um
