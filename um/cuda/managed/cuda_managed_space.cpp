#include "um/cuda/managed/cuda_managed_space.h"

#include <algorithm>
#include <string>
#include <utility>

#include "um/cuda/driver/api.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::um {

SlabPages::SlabPages(Range slab, Bytes page, Ledger& ledger, Ledger& near, DeadContent dead)
    : slab_{slab},
      page_{page.count()},
      ledger_{ledger},
      near_{near},
      dead_content_{dead},
      pages_(slab.size() / page.count()) {
  expects(slab.size() % page_ == 0, "a slab of whole pages");
}

SlabPages::~SlabPages() {
  for (Page& page : pages_) change(page, State::kAway);
}

bool SlabPages::is_charged(State state) const {
  if (state == State::kAway) return false;
  return state == State::kLive || dead_content_ == DeadContent::kIsDropped;
}

// Charges nothing in `ledger_`: bring() has done so.
void SlabPages::change(Page& page, State to) noexcept {
  const bool was_charged = is_charged(page.state);
  if (was_charged && page.state != State::kLive) --dead_;
  if (is_charged(to) && to != State::kLive) ++dead_;
  if (was_charged && !is_charged(to)) ledger_.release(Bytes{page_});
  if (page.state == State::kAway && to != State::kAway) (void)near_.try_charge(Bytes{page_});
  if (page.state != State::kAway && to == State::kAway) near_.release(Bytes{page_});
  page.state = to;
}

SlabPages::Span SlabPages::pages_of(Range range) const {
  expects(
      range.data() >= slab_.data() && range.data() + range.size() <= slab_.data() + slab_.size(),
      "a range of the slab");
  const auto offset = static_cast<std::size_t>(range.data() - slab_.data());
  expects(offset % page_ == 0 && range.size() % page_ == 0, "a range of whole pages");
  return {.begin = offset / page_, .end = (offset + range.size()) / page_};
}

template <class Pred>
std::vector<Range> SlabPages::ranges_where(Span span, const Pred& pred) const {
  std::vector<Range> ranges;
  for (std::size_t index = span.begin; index < span.end; ++index) {
    if (!pred(pages_[index])) continue;
    std::byte* const address = slab_.data() + index * page_;
    if (!ranges.empty() && ranges.back().data() + ranges.back().size() == address) {
      ranges.back() = {ranges.back().data(), ranges.back().size() + page_};
    } else {
      ranges.emplace_back(address, page_);
    }
  }
  return ranges;
}

std::vector<Range> SlabPages::ranges_in(Span span, State state) const {
  return ranges_where(span, [state](const Page& page) { return page.state == state; });
}

Bytes SlabPages::cost(Range range) const {
  const Span span = pages_of(range);
  std::uint64_t added = 0;
  for (std::size_t i = span.begin; i < span.end; ++i) added += is_charged(pages_[i].state) ? 0 : 1;
  return Bytes{added * page_};
}

SlabPages::Brought SlabPages::bring(Range range) {
  const Span span = pages_of(range);
  expects(!is_dropping(range), "pages that the driver does not drop");
  Brought brought{.away = ranges_in(span, State::kAway),
                  .retired = ranges_in(span, State::kRetired)};
  ledger_.charge(cost(range));
  for (std::size_t i = span.begin; i < span.end; ++i) change(pages_[i], State::kLive);
  return brought;
}

void SlabPages::take_back(const Brought& brought) noexcept {
  const auto make = [this](const std::vector<Range>& ranges, State state) {
    for (const Range& range : ranges) {
      const Span span = pages_of(range);
      for (std::size_t i = span.begin; i < span.end; ++i) change(pages_[i], state);
    }
  };
  make(brought.away, State::kAway);
  make(brought.retired, State::kRetired);
}

bool SlabPages::is_dropping(Range range) const {
  const Span span = pages_of(range);
  return std::any_of(pages_.begin() + static_cast<std::ptrdiff_t>(span.begin),
                     pages_.begin() + static_cast<std::ptrdiff_t>(span.end),
                     [](const Page& page) { return page.state == State::kDropping; });
}

void SlabPages::retire(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    ++pages_[i].lives_due;
    if (pages_[i].state == State::kLive) change(pages_[i], State::kRetired);
  }
}

void SlabPages::end_life(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    Page& page = pages_[i];
    if (page.lives_due > 0) {
      --page.lives_due;
    } else if (page.state == State::kLive) {  // discarded without retire()
      change(page, State::kRetired);
    }
  }
}

std::vector<Range> SlabPages::drop(Range range) {
  const Span span = pages_of(range);
  const auto is_over = [](const Page& page) {
    return page.state == State::kRetired && page.lives_due == 0;
  };
  std::vector<Range> dropped = ranges_where(span, is_over);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    if (is_over(pages_[i])) change(pages_[i], State::kDropping);
  }
  return dropped;
}

void SlabPages::end_drop(std::span<const Range> ranges) noexcept {
  for (const Range& range : ranges) {
    const Span span = pages_of(range);
    for (std::size_t i = span.begin; i < span.end; ++i) change(pages_[i], State::kAway);
  }
}

void SlabPages::send_away(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    if (pages_[i].state == State::kLive) change(pages_[i], State::kAway);
  }
}

Bytes SlabPages::live_bytes(Range range) const {
  if (range.empty()) return {};
  expects(
      range.data() >= slab_.data() && range.data() + range.size() <= slab_.data() + slab_.size(),
      "a range of the slab");
  const auto begin = static_cast<std::size_t>(range.data() - slab_.data());
  const std::size_t end = begin + range.size();
  Bytes live;
  for (std::size_t i = begin / page_; i * page_ < end; ++i) {
    if (pages_[i].state != State::kLive) continue;
    live += Bytes{std::min(end, (i + 1) * page_) - std::max(begin, i * page_)};
  }
  return live;
}

std::size_t SlabPages::away(Range range) const {
  const Span span = pages_of(range);
  return static_cast<std::size_t>(
      std::count_if(pages_.begin() + static_cast<std::ptrdiff_t>(span.begin),
                    pages_.begin() + static_cast<std::ptrdiff_t>(span.end),
                    [](const Page& page) { return page.state == State::kAway; }));
}

// A prefetch to the device returns before it ends. The next one is issued meanwhile on another
// stream, which is idle, too. A prefetch to the host blocks its thread during the move; the next
// one is issued as soon as the call returns, while the end of the last one is still reported.
constexpr std::size_t kMovesUnderWay = 2;

namespace {

// The most that one hint moves. While it moves pages, the driver holds a lock that launches take:
// on an H200 a launch waited for 54 ms beside a hint of 512 MiB out, and for 0.8 ms beside hints of
// 8 MiB one after another, which were faster, too (13.5 GB/s for 11.4). In, smaller hints cost
// speed: 40 GB/s by 32 MiB for 50 by 512 MiB, with waits of 0.4 ms for 6 ms.
constexpr Bytes kMostOut = 8_MiB;
constexpr Bytes kMostIn = 32_MiB;

bool overlap(Range one, Range other) {
  return one.data() < other.data() + other.size() && other.data() < one.data() + one.size();
}

}  // namespace

CudaManagedSpace::Slab::Slab(CudaManagedMemory& from, const ManagedOptions& options)
    : memory{from},
      range{from.allocate(options.size, options.gpu.oversubscribe), options.size.count()} {}

CudaManagedSpace::Slab::~Slab() { memory.free(range.data()); }

CudaManagedSpace::CudaManagedSpace(CudaApi& api, CudaManagedMemory& memory, ComputeStreams& compute,
                                   DriverCounters* driver, const ManagedOptions& options,
                                   Ledger& ledger)
    : api_{api},
      compute_{compute},
      driver_{driver},
      driver_before_{driver == nullptr ? DriverTotals{} : driver->read()},
      page_{options.page},
      has_discard_{api.facts().has_discard},
      tells_discards_{has_discard_ && options.gpu.tells_discards()},
      ledger_{ledger},
      slab_{memory, checked(options, api.facts())},
      far_side_{slab_.range},
      upkeep_{api, "um upkeep"},
      upkept_{api},
      discarded_{api},
      pages_{slab_.range, options.page, ledger, memory.near(),
             tells_discards_ ? DeadContent::kIsDropped : DeadContent::kStaysUntilOverwritten},
      discarding_{"um upkeep"},
      in_{api, {.name = "um in", .streams = kMovesUnderWay, .under_way = kMovesUnderWay}},
      out_{api, {.name = "um out", .streams = kMovesUnderWay, .under_way = kMovesUnderWay}} {
  discarding_.enqueue([&api] { api.enter_thread(); });
}

CudaManagedSpace::~CudaManagedSpace() {
  discarding_.drain();
  drain(api_, upkeep_.get());  // the slab must outlive its last discard
}

void CudaManagedSpace::note(std::exception_ptr failure) {
  if (failure == nullptr) return;
  if (failure_ == nullptr) failure_ = std::move(failure);
  changed_.notify_all();
}

void CudaManagedSpace::prefetch(Range range, MemoryTier tier, Completion done) {
  if (tier == MemoryTier::kNear) {
    bring(range, std::move(done));
  } else {
    send_away(range, std::move(done));
  }
}

// A prefetch is charged when it is asked for. If room comes only from pages that are being dropped,
// it is charged when it is issued: only the thread that issues prefetches waits.
void CudaManagedSpace::bring(Range range, Completion done) {
  const std::lock_guard lock{mutex_};
  Arrival& arrival = arriving_.emplace_back(Arrival{.range = range});
  SlabPages::Brought brought;
  try {
    if (has_room(range)) {
      bring_now(arrival, brought);
    } else {
      if (!will_have_room(range, Bytes{})) refuse(range);
      arrival.promised = pages_.cost(range);
    }
    arrival.number = in_.enqueue([this, &arrival](cudaStream_t stream) { fetch(arrival, stream); },
                                 [this, done = std::move(done)](std::exception_ptr failure) {
                                   end_arrival(failure);
                                   done(std::move(failure));
                                 });
  } catch (...) {
    pages_.take_back(brought);
    arriving_.pop_back();
    throw;
  }
  promised_ += arrival.promised;
}

void CudaManagedSpace::bring_now(Arrival& arrival, SlabPages::Brought& brought) {
  arrival.pages = pages_.away(arrival.range);
  brought = pages_.bring(arrival.range);
  arrival.is_charged = true;
}

void CudaManagedSpace::fetch(Arrival& arrival, cudaStream_t stream) {
  {
    std::unique_lock lock{mutex_};
    if (!arrival.is_charged) {
      wait_for_room(lock, arrival.range, arrival.promised);
      SlabPages::Brought brought;
      bring_now(arrival, brought);
      promised_ -= arrival.promised;
    }
  }
  move(arrival.range, MemoryTier::kNear, stream);
}

// Gives the driver hints that let launches in between.
void CudaManagedSpace::move(Range range, MemoryTier tier, cudaStream_t stream) {
  const std::size_t most = (tier == MemoryTier::kFar ? kMostOut : kMostIn).count();
  for (std::size_t at = 0; at < range.size(); at += most) {
    if (at > 0 && tier == MemoryTier::kFar) api_.synchronize(stream);
    api_.prefetch(range.subspan(at, std::min(most, range.size() - at)), tier, stream);
  }
}

void CudaManagedSpace::end_arrival(const std::exception_ptr& failure) {
  const std::lock_guard lock{mutex_};
  note(failure);
  if (failure == nullptr) counters_.bytes_prefetched += arriving_.front().pages * page_;
  arriving_.pop_front();
}

bool CudaManagedSpace::lets_launches_wait(Range range) {
  std::vector<std::uint64_t> awaited;
  {
    const std::lock_guard lock{mutex_};
    for (const Arrival& each : arriving_) {
      if (overlap(each.range, range)) awaited.push_back(each.number);
    }
  }
  for (const std::uint64_t number : awaited) in_.make_wait(compute_, number);
  return true;
}

void CudaManagedSpace::send_away(Range range, Completion done) {
  out_.enqueue([this, range](cudaStream_t stream) { move(range, MemoryTier::kFar, stream); },
               [this, range, done = std::move(done)](std::exception_ptr failure) {
                 {
                   const std::lock_guard lock{mutex_};
                   note(failure);
                   if (failure == nullptr) {
                     const std::size_t before = pages_.away(range);
                     pages_.send_away(range);
                     counters_.bytes_offloaded += (pages_.away(range) - before) * page_;
                     changed_.notify_all();
                   }
                 }
                 done(std::move(failure));
               });
}

void CudaManagedSpace::populate(Range range) {
  const std::lock_guard one{populating_};
  SlabPages::Brought brought;
  {
    std::unique_lock lock{mutex_};
    wait_for_room(lock, range, Bytes{});
    brought = pages_.bring(range);
  }
  if (brought.away.empty()) return;
  try {
    give_room(brought.away);
  } catch (...) {
    const std::lock_guard lock{mutex_};
    pages_.take_back(brought);
    // Retired pages may have missed their drop, so nothing may wait for their room.
    if (tells_discards_ && !brought.retired.empty()) note(std::current_exception());
    changed_.notify_all();
    throw;
  }
  try {
    api_.record(upkept_.get(), upkeep_.get());
    compute_.wait(upkept_.get());
  } catch (...) {
    drain(api_, upkeep_.get());  // launches can use the pages, although nothing makes them wait
    throw;
  }
}

// Provides near memory for pages to overwrite. A driver without discard moves their useless far
// content.
void CudaManagedSpace::give_room(const std::vector<Range>& ranges) {
  if (has_discard_) {
    api_.discard_and_prefetch_near(ranges, upkeep_.get());
  } else {
    for (const Range& range : ranges) move(range, MemoryTier::kNear, upkeep_.get());
  }
}

// Returns whether the pages can become live now. A later discard would drop pages that the driver
// has yet to drop.
bool CudaManagedSpace::has_room(Range range) const {
  return !pages_.is_dropping(range) &&
         pages_.cost(range) <= saturating_difference(ledger_.limit(), ledger_.in_use());
}

// Returns whether there is room, or will be when all dead pages have been dropped. `promised` is
// the part of `promised_` that is for these pages.
bool CudaManagedSpace::will_have_room(Range range, Bytes promised) const {
  const Bytes room = saturating_difference(ledger_.limit(), ledger_.in_use()) + pages_.dead();
  return promised_ - promised + pages_.cost(range) <= room;
}

// Dead pages are dropped when their launches have ended, which needs no further call of this
// thread. Throws: OutOfMemory if no drop makes room; the failure of an earlier move.
void CudaManagedSpace::wait_for_room(std::unique_lock<std::mutex>& lock, Range range,
                                     Bytes promised) {
  changed_.wait(lock, [&] {
    return has_room(range) || failure_ != nullptr || !will_have_room(range, promised);
  });
  if (has_room(range)) return;
  if (!will_have_room(range, promised)) refuse(range);
  std::rethrow_exception(failure_);
}

void CudaManagedSpace::refuse(Range range) const {
  throw OutOfMemory{"near memory is full: " + to_string(pages_.cost(range)) +
                    " more do not fit beside " + to_string(ledger_.in_use()) + " in a budget of " +
                    to_string(ledger_.limit())};
}

void CudaManagedSpace::retire(Range range) {
  const std::lock_guard lock{mutex_};
  pages_.retire(range);
}

// Enqueues the driver call, so that the thread that reports the end of a run does not wait: moves
// wait for that thread.
void CudaManagedSpace::discard(Range range) {
  const std::lock_guard lock{mutex_};
  pages_.end_life(range);
  if (!tells_discards_) return;
  try {
    discarding_.enqueue([this, range] { drop(range); });
  } catch (...) {  // no memory: the pages stay near, and nothing may wait for their room
    note(std::current_exception());
    throw;
  }
}

// Keeps pages that launches have populated again since the discard.
void CudaManagedSpace::drop(Range range) {
  std::vector<Range> dropped;
  std::exception_ptr failure;
  try {
    {
      const std::lock_guard lock{mutex_};
      dropped = pages_.drop(range);
    }
    if (dropped.empty()) return;
    api_.discard(dropped, upkeep_.get());
    api_.record(discarded_.get(), upkeep_.get());
    api_.synchronize(discarded_.get());
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock{mutex_};
  pages_.end_drop(dropped);
  if (failure == nullptr) {
    for (const Range& each : dropped) counters_.discarded_pages += each.size() / page_.count();
  }
  note(failure);
  changed_.notify_all();
}

// Checks for failures only: the driver needs no declared uses.
void CudaManagedSpace::begin_use(std::span<const Use> /*operands*/) {
  const std::lock_guard lock{mutex_};
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void CudaManagedSpace::check() {
  discarding_.drain();
  begin_use({});
}

Counters CudaManagedSpace::counters() const {
  const DriverTotals now = driver_ == nullptr ? DriverTotals{} : driver_->read();
  const std::lock_guard lock{mutex_};
  Counters counters = counters_;
  if (driver_ != nullptr) {
    counters.faults = now.device_faults + now.host_faults - driver_before_.device_faults -
                      driver_before_.host_faults;
    counters.evictions = (now.out_by_eviction - driver_before_.out_by_eviction) / page_;
  }
  return counters;
}

Bytes CudaManagedSpace::near_bytes(Range range) const {
  const std::lock_guard lock{mutex_};
  return pages_.live_bytes(range);
}

std::string CudaManagedSpace::description() const {
  const char* dead = !has_discard_     ? "no discards: the driver has none"
                     : tells_discards_ ? "discards"
                                       : "no discards";
  return "CUDA, " + std::to_string(page_ / 1_MiB) + " MiB pages, " + dead;
}

}  // namespace spillway::um
