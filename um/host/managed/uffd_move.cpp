#include "um/host/managed/uffd_move.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "um/error.h"
#include "um/host/managed/fatal.h"
#include "um/host/managed/page_mapper.h"
#include "um/machine/mapping.h"

namespace spillway::um {

RemapEvents::EventFd::EventFd() : number_{eventfd(0, EFD_CLOEXEC)} {
  if (number_ < 0) throw system_error("cannot watch managed memory", errno);
}

RemapEvents::EventFd::~EventFd() { close(number_); }

RemapEvents::RemapEvents(int descriptor) : reading_{"um remaps"} {
  reading_.enqueue([this, descriptor] { read_all(descriptor); });
}

RemapEvents::~RemapEvents() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(end_.number(), &one, sizeof(one));
  reading_.drain();
}

// Ignores the events: a displaced page is noticed when it must move.
void RemapEvents::read_all(int descriptor) const {
  std::array<pollfd, 2> awaited{{{.fd = descriptor, .events = POLLIN, .revents = 0},
                                 {.fd = end_.number(), .events = POLLIN, .revents = 0}}};
  while ((awaited[1].revents & POLLIN) == 0) {
    if (poll(awaited.data(), awaited.size(), /*timeout=*/-1) < 0) continue;  // EINTR
    uffd_msg event{};
    [[maybe_unused]] const auto got = read(descriptor, &event, sizeof(event));  // EAGAIN: none
  }
}

namespace {

// Copied from linux/userfaultfd.h of Linux 6.8; Debian 12 has the headers of 6.1.
constexpr std::uint64_t kFeatureMove = 1U << 16U;
struct UffdioMove {
  std::uint64_t dst;
  std::uint64_t src;
  std::uint64_t len;
  std::uint64_t mode;
  std::int64_t move;  // bytes moved, or a negative errno
};
const unsigned long kUffdioMove = _IOWR(UFFDIO, 0x05, UffdioMove);

// Waits while the kernel holds a page or an mremap() of the program waits for its event to be read.
// The kernel then reports EBUSY or EAGAIN, usually for microseconds.
constexpr BackOff::Pauses kWaits{.first = std::chrono::microseconds{10},
                                 .longest = std::chrono::milliseconds{10},
                                 .total = std::chrono::seconds{10}};

constexpr std::string_view kLasting = "this has lasted 10 s; try paging by memfd";

constexpr std::size_t kSmallPage = (4_KiB).count();  // the processor's page
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
  // Keeps the kernel from joining small pages into huge pages, which it would have to split again
  // for every move.
  const int advice = Bytes{page_} < 2_MiB ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
  madvise(region_.data(), region_.size(), advice);
  madvise(slots_.data(), slots_.size(), advice);
  touch_memory(slots_);
  register_range(region_);
  register_range(slots_);  // also catches touches of slots that are mapped as pages
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

// Works around Linux 6.18, which miscounts while it compacts memory. It moves small pages, reports
// fewer or none, and fails on a retry because they are already there. A moved page is absent at its
// source and present at its destination.
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

// The kernel moves only between memory with equal protection and locking.
void UffdMove::make_alike(std::byte* one, std::byte* other) const noexcept {
  for (std::byte* const each : {one, other}) {
    mprotect(each, page_, PROT_READ | PROT_WRITE);
    syscall(SYS_munlock, each, page_);  // direct system call: a sanitizer's wrapper is a no-op
  }
}

// The kernel moves only private pages. A child may share a page if the program has undone
// MADV_DONTFORK.
void UffdMove::unshare([[maybe_unused]] std::byte* page) const noexcept {
#ifdef MADV_POPULATE_WRITE
  madvise(page, page_, MADV_POPULATE_WRITE);
#endif
}

int UffdMove::move(std::byte* to, std::byte* from) const noexcept {
  BackOff waits{kWaits};
  std::size_t most = page_;  // bytes per call; a small page where parts are mapped differently
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
    if (request.move > 0) {  // part of the page is done: continue at once
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

std::optional<std::string> probe_uffd_move() {
  try {
    const UffdMove mapper{{.page = 4_KiB, .pages = 1, .slots = 1}};
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace spillway::um
