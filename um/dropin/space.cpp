#include "um/dropin/space.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "um/dropin/allocations.h"
#include "um/error.h"
#include "um/options.h"

namespace spillway::um {
namespace {

constexpr Bytes kSmallestSpacePage = 4_KiB;
constexpr Bytes kLargestSpacePage = 2_MiB;
/// With fewer near pages, an eviction has little choice.
constexpr std::uint64_t kFewPages = 16;
/// Larger sizes, rounded up to pages, would not fit in 64 bits or any address space.
constexpr Bytes kTooMuch{std::uint64_t{1} << 56U};

Bytes chosen_page(Bytes near, bool evicts) {
  if (!evicts) return kLargestSpacePage;  // the driver's unit
  Bytes page = kLargestSpacePage;
  while (page > kSmallestSpacePage && near / page < kFewPages) page = Bytes{page.count() / 2};
  return page;
}

void expect_sound(const SpaceOptions& options, bool evicts) {
  if (options.near == Bytes{}) throw Misuse{"no near memory; give near_bytes"};
  if (options.capacity == Bytes{}) throw Misuse{"no capacity; give capacity_bytes"};
  if (options.capacity > kTooMuch || options.near > kTooMuch) {
    throw Misuse{"a space of " + to_string(std::max(options.capacity, options.near)) +
                 "; give at most " + to_string(kTooMuch)};
  }
  if (options.page == Bytes{}) return;
  const bool is_size = evicts
                           ? options.page >= kSmallestSpacePage && options.page <= kLargestSpacePage
                           : options.page >= kLargestSpacePage;
  const bool is_page = is_size && std::has_single_bit(options.page.count());
  if (!is_page) {
    throw Misuse{"pages of " + to_string(options.page) +
                 (evicts ? "; give a power of two from 4 KiB to 2 MiB, or 0"
                         : "; give a power of two of at least 2 MiB, or 0")};
  }
}

// Returns the options of the managed space under a Space. `evicts` describes the device. Throws:
// Misuse when the options make no sense.
ManagedOptions managed_options(const SpaceOptions& options, bool evicts) {
  expect_sound(options, evicts);
  const Bytes page = options.page == Bytes{} ? chosen_page(options.near, evicts) : options.page;
  const Bytes size = round_up(options.capacity, page);
  const Bytes near = round_down(options.near, page);
  // An instruction may touch two pages.
  if (near < std::min(2 * page, size)) {
    throw Misuse{"near memory of " + to_string(options.near) + " does not hold two pages of " +
                 to_string(page) + "; give it more, or use smaller pages"};
  }
  if (size / page >= std::numeric_limits<std::uint32_t>::max()) {
    throw Misuse{to_string(size) + " are too many pages of " + to_string(page) +
                 "; use larger pages, or more near memory, which allows them"};
  }
  // A GPU's driver discards in the order of a stream that the program's streams do not wait for, so
  // early writes of the program would be dropped. Discarded pages therefore stay near there until
  // they are overwritten. A device that evicts by itself discards in the order of the calls.
  return {.size = size,
          .near = near,
          .page = page,
          .far = options.far,
          .link = options.link,
          .paging = options.paging,
          .writes_are_declared = false,
          .gpu = {.oversubscribe = options.oversubscribe,
                  .discards = evicts ? std::nullopt : std::optional{false}}};
}

constexpr Bytes kLargestAlignment = 2_MiB;

/// The most prefetches or offloads in flight before the next one blocks. Otherwise hints faster
/// than the link would delay all later moves behind an endless queue.
constexpr std::uint64_t kMaxHinted = 64;

std::string text(const void* address) {
  std::ostringstream stream;
  stream << address;
  return stream.str();
}

std::string no_room(Bytes size, Bytes in_use, Bytes capacity) {
  return "no room for " + to_string(size) + " in one piece: " + to_string(in_use) + " of " +
         to_string(capacity) + " are allocated; free some, or make a space of more capacity";
}

}  // namespace

Space::Space(Device& device, const SpaceOptions& options)
    : options_{managed_options(options, device.evicts())},
      ledger_{options_.near},
      managed_{device.make_managed_space(options_, ledger_)},
      slab_{managed_->slab()},
      allocations_{options_.size, options_.page},
      has_advice_(options_.size / options_.page) {}

Space::~Space() {
  for (const Leaving& each : leaving_) each.event->wait();
}

// --- allocations

std::byte* Space::allocate(Bytes size, Bytes alignment) {
  if (size == Bytes{}) throw Misuse{"an allocation of no bytes; ask for at least one"};
  if (alignment == Bytes{}) alignment = Allocations::kUnit;
  if (!std::has_single_bit(alignment.count()) || alignment > kLargestAlignment) {
    throw Misuse{"an alignment of " + std::to_string(alignment.count()) +
                 " bytes; give a power of two of at most 2 MiB"};
  }
  const std::lock_guard lock{mutex_};
  reclaim();
  auto offset = allocations_.allocate(size, alignment);
  while (!offset && wait_for_room()) offset = allocations_.allocate(size, alignment);
  if (!offset) throw OutOfMemory{no_room(size, allocations_.in_use(), allocations_.size())};
  ++counters_.allocations;
  return slab_.data() + offset->count();
}

std::byte* Space::allocate_for(ProgramStream& stream, Bytes size, Bytes alignment) {
  std::byte* const address = allocate(size, alignment);
  try {
    if (near_bytes(address, size) == size) return address;
    // A failed move is reported like that of a prefetch by the program.
    if (start_move(address, size, MemoryTier::kNear, [](const std::exception_ptr&) {})) {
      const Range memory = allocation(address, size);
      stream.join([&] { static_cast<void>(managed_->hints().lets_launches_wait(memory)); });
    }
  } catch (...) {
    free(address);
    throw;
  }
  return address;
}

void Space::free(const void* address) { free_after(address, nullptr); }

void Space::free_after(const void* address, std::unique_ptr<const Event> event) {
  const std::lock_guard lock{mutex_};
  end_allocation(offset_of_allocation(address), std::move(event));
}

void Space::free_after(const void* address, ProgramStream& stream) {
  const std::lock_guard lock{mutex_};
  const Bytes offset = offset_of_allocation(address);
  Range dead;
  if (options_.gpu.oversubscribe && stream.can_discard()) {
    dead = whole_pages_in(*allocations_.around(offset));
  }
  end_allocation(offset, record_end(stream, dead));
}

/// Returns an event for the end of the work so far of `stream` and of the content of `dead`. Counts
/// a discard that fails, and does without it.
std::unique_ptr<const Event> Space::record_end(ProgramStream& stream, Range dead) {
  if (dead.empty()) return stream.record({});
  const std::uint64_t near_pages = managed_->near_bytes(dead) / options_.page;
  std::unique_ptr<const Event> event;
  try {
    event = stream.record(dead);
    counters_.moves.discarded_pages += near_pages;
  } catch (const Error&) {
    event = stream.record({});
    counters_.moves.refused_hints += dead.size() / options_.page.count();
  }
  return event;
}

/// Requires: the caller holds the mutex.
void Space::end_allocation(Bytes offset, std::unique_ptr<const Event> event) {
  if (leaving_.size() == leaving_.capacity()) leaving_.reserve(2 * leaving_.size() + 8);
  allocations_.end(offset);
  ++counters_.frees;
  if (event == nullptr || event->has_fired()) {
    give_back(offset);
  } else {
    leaving_.push_back({.offset = offset, .event = std::move(event)});
  }
}

/// Requires: the caller holds the mutex, and nothing uses the allocation any more.
void Space::give_back(Bytes offset) {
  for (const Allocations::Span& empty : allocations_.free(offset)) {
    managed_->hints().discard(range(empty));
    for (auto page = empty.offset / options_.page;
         page < (empty.offset + empty.size) / options_.page; ++page) {
      if (!has_advice_[page]) continue;
      has_advice_[page] = false;
      managed_->hints().advise(range({.offset = page * options_.page, .size = options_.page}),
                               Advice::kNone);
    }
  }
}

/// Frees the allocations that streams have finished with.
void Space::reclaim() {
  const auto done =
      std::stable_partition(leaving_.begin(), leaving_.end(),
                            [](const Leaving& each) { return !each.event->has_fired(); });
  const auto still = static_cast<std::size_t>(done - leaving_.begin());
  while (leaving_.size() > still) {
    const Bytes offset = leaving_.back().offset;
    leaving_.pop_back();  // first: a failed give_back() must not be repeated
    give_back(offset);
  }
}

/// Waits for the oldest deferred free. Returns false when there is none.
bool Space::wait_for_room() {
  if (leaving_.empty()) return false;
  leaving_.front().event->wait();
  if (!leaving_.front().event->has_fired()) return false;  // failed: perhaps still in use
  const Bytes offset = leaving_.front().offset;
  leaving_.erase(leaving_.begin());
  give_back(offset);
  return true;
}

Bytes Space::offset_of_allocation(const void* address) const {
  const Bytes offset = checked(address, Bytes{}).offset;
  if (allocations_.starts_at(offset)) return offset;
  throw NotAllocated{text(address) + " is inside an allocation; free its first address, " +
                     text(slab_.data() + allocations_.around(offset)->offset.count())};
}

// --- ranges

Allocations::Span Space::checked(const void* address, Bytes size) const {
  const std::less<> is_before;  // total order over all addresses
  const auto* const at = static_cast<const std::byte*>(address);
  if (is_before(at, slab_.data()) || !is_before(at, slab_.data() + slab_.size())) {
    throw NotAllocated{text(address) + " is not an address of this space"};
  }
  const Bytes offset{static_cast<std::uint64_t>(at - slab_.data())};
  const auto around = allocations_.around(offset);
  if (!around) throw NotAllocated{text(address) + " is of no live allocation; was it freed?"};
  const Bytes left = around->offset + around->size - offset;
  if (size > left) {
    throw NotAllocated{"a range of " + std::to_string(size.count()) + " bytes at " + text(address) +
                       " leaves its allocation, which ends after " + std::to_string(left.count())};
  }
  return {.offset = offset, .size = size};
}

Range Space::range(Allocations::Span span) const {
  return slab_.subspan(span.offset.count(), span.size.count());
}

Range Space::whole_pages_around(Allocations::Span span) const {
  const Bytes begin = round_down(span.offset, options_.page);
  const Bytes end = round_up(span.offset + span.size, options_.page);
  return range({.offset = begin, .size = end - begin});
}

Range Space::whole_pages_in(Allocations::Span span) const {
  const Bytes begin = round_up(span.offset, options_.page);
  const Bytes end = round_down(span.offset + span.size, options_.page);
  return begin < end ? range({.offset = begin, .size = end - begin}) : Range{};
}

// --- hints

void Space::prefetch(const void* address, Bytes size, MemoryTier tier) {
  if (allocation(address, size).empty() || size == Bytes{}) return;
  hinted_.start_below(kMaxHinted, tier);
  bool is_started = false;
  try {
    is_started = start_move(address, size, tier,
                            [this, tier](const std::exception_ptr&) { hinted_.end(tier); });
  } catch (...) {
    hinted_.end(tier);
    throw;
  }
  if (!is_started) hinted_.end(tier);
}

bool Space::start_move(const void* address, Bytes size, MemoryTier tier, Completion done) {
  const std::lock_guard lock{mutex_};
  const Allocations::Span span = checked(address, size);
  if (size == Bytes{}) return false;
  Range pages = whole_pages_around(span);
  if (tier == MemoryTier::kNear && Bytes{pages.size()} > options_.near) {
    // The end of the range would evict its beginning.
    counters_.moves.refused_hints += (Bytes{pages.size()} - options_.near) / options_.page;
    pages = pages.first(options_.near.count());
  }
  try {
    managed_->hints().prefetch(pages, tier,
                               [this, tier, done = std::move(done)](std::exception_ptr failure) {
                                 moves_.end(tier);
                                 done(std::move(failure));
                               });
  } catch (const OutOfMemory&) {  // a GPU's ledger refuses now; the host later, page by page
    counters_.moves.refused_hints += pages.size() / options_.page.count();
    return false;
  }
  moves_.start(tier);
  return true;
}

void Space::discard(const void* address, Bytes size) {
  const std::lock_guard lock{mutex_};
  const Range pages = whole_pages_in(checked(address, size));
  if (!pages.empty()) managed_->hints().discard(pages);
}

void Space::advise(const void* address, Bytes size, Advice advice) {
  const std::lock_guard lock{mutex_};
  const Allocations::Span span = checked(address, size);
  if (size == Bytes{}) return;
  managed_->hints().advise(whole_pages_around(span), advice);
  const Bytes end = round_up(span.offset + size, options_.page);
  for (auto page = span.offset / options_.page; page < end / options_.page; ++page) {
    has_advice_[page] = advice != Advice::kNone;
  }
}

void Space::touch(const void* address, Bytes size, Access access) {
  const std::lock_guard lock{mutex_};
  const Allocations::Span span = checked(address, size);
  managed_->hints().check();
  const Bytes end = span.offset + size;
  for (Bytes at = span.offset; at < end;) {
    const Bytes next = std::min(end, round_down(at, options_.page) + options_.page);
    touch_page(range({.offset = at, .size = next - at}), access);
    at = next;
  }
  ++counters_.touches;
}

/// Pins one page at a time, briefly: pages in use cannot be evicted, and another thread's page
/// fault must always find room.
void Space::touch_page(Range part, Access access) {
  // Does not rely on a declared overwrite, which the program may do only later.
  const Access safe = access == Access::kRead ? Access::kRead : Access::kReadWrite;
  const std::array operands{Use{.range = part, .access = safe}};
  managed_->hints().begin_use(operands);
  managed_->hints().end_use(operands);
}

void Space::synchronize() {
  moves_.wait();
  managed_->hints().check();
}

// --- counters

Range Space::allocation(const void* address, Bytes size) const {
  const std::lock_guard lock{mutex_};
  return range(*allocations_.around(checked(address, size).offset));
}

Bytes Space::near_bytes(const void* address, Bytes size) const {
  const std::lock_guard lock{mutex_};
  return managed_->near_bytes(range(checked(address, size)));
}

SpaceCounters Space::counters() const {
  const std::lock_guard lock{mutex_};
  SpaceCounters counters = counters_;
  counters.moves += managed_->counters();
  counters.allocated = allocations_.in_use();
  counters.near = ledger_.in_use();
  counters.near_peak = ledger_.peak();
  return counters;
}

}  // namespace spillway::um
