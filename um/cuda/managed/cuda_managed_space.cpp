#include "um/cuda/managed/cuda_managed_space.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "um/cuda/driver/api.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::um {

SlabPages::SlabPages(Range slab, Bytes page, Ledger& ledger)
    : slab_{slab}, page_{page.count()}, ledger_{ledger}, pages_(slab.size() / page.count()) {
  expects(slab.size() % page_ == 0, "a slab of whole pages");
}

SlabPages::~SlabPages() { send_away(slab_); }

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

std::vector<Range> SlabPages::bring(Range range) {
  const Span span = pages_of(range);
  std::uint64_t added = 0;
  for (std::size_t i = span.begin; i < span.end; ++i) added += pages_[i].state != State::kLive;
  ledger_.charge(Bytes{added * page_});
  std::vector<Range> away =
      ranges_where(span, [](const Page& page) { return page.state == State::kAway; });
  for (std::size_t i = span.begin; i < span.end; ++i) pages_[i].state = State::kLive;
  return away;
}

void SlabPages::retire(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    ++pages_[i].lives_due;
    if (pages_[i].state != State::kLive) continue;
    pages_[i].state = State::kRetired;
    ledger_.release(Bytes{page_});
  }
}

void SlabPages::end_life(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    Page& page = pages_[i];
    if (page.lives_due > 0) {
      --page.lives_due;
    } else if (page.state == State::kLive) {  // discarded without retire()
      page.state = State::kRetired;
      ledger_.release(Bytes{page_});
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
    if (is_over(pages_[i])) pages_[i].state = State::kAway;
  }
  return dropped;
}

void SlabPages::send_away(Range range) {
  const Span span = pages_of(range);
  for (std::size_t i = span.begin; i < span.end; ++i) {
    if (pages_[i].state != State::kLive) continue;
    pages_[i].state = State::kAway;
    ledger_.release(Bytes{page_});
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
// stream, which is idle, too. A prefetch to the host blocks its thread during the move, so a second
// one could not be issued earlier.
constexpr std::size_t kPrefetchesUnderWay = 2;

namespace {

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
      slab_{memory, checked(options, api.facts())},
      far_side_{slab_.range},
      pages_{slab_.range, options.page, ledger},
      upkeep_{api, "um upkeep"},
      upkept_{api},
      discarding_{"um upkeep"},
      in_{api, {.name = "um in", .streams = kPrefetchesUnderWay, .under_way = kPrefetchesUnderWay}},
      out_{api, {.name = "um out"}} {
  discarding_.enqueue([&api] { api.enter_thread(); });
}

CudaManagedSpace::~CudaManagedSpace() {
  discarding_.drain();
  drain(api_, upkeep_.get());  // the slab must outlive its last discard
}

void CudaManagedSpace::note(std::exception_ptr failure) {
  if (failure != nullptr && failure_ == nullptr) failure_ = std::move(failure);
}

void CudaManagedSpace::prefetch(Range range, MemoryTier tier, Completion done) {
  if (tier == MemoryTier::kNear) {
    bring(range, std::move(done));
  } else {
    send_away(range, std::move(done));
  }
}

void CudaManagedSpace::bring(Range range, Completion done) {
  const std::lock_guard lock{mutex_};
  const std::size_t pages = pages_.away(range);
  static_cast<void>(pages_.bring(range));
  Arrival& arrival = arriving_.emplace_back(Arrival{.range = range});
  try {
    arrival.number = in_.enqueue(
        [this, range](cudaStream_t stream) { api_.prefetch(range, MemoryTier::kNear, stream); },
        [this, pages, done = std::move(done)](std::exception_ptr failure) {
          end_arrival(pages, failure);
          done(std::move(failure));
        });
  } catch (...) {
    arriving_.pop_back();
    throw;
  }
}

void CudaManagedSpace::end_arrival(std::size_t pages, const std::exception_ptr& failure) {
  const std::lock_guard lock{mutex_};
  note(failure);
  if (failure == nullptr) counters_.bytes_prefetched += pages * page_;
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
  out_.enqueue(
      [this, range](cudaStream_t stream) { api_.prefetch(range, MemoryTier::kFar, stream); },
      [this, range, done = std::move(done)](std::exception_ptr failure) {
        {
          const std::lock_guard lock{mutex_};
          note(failure);
          if (failure == nullptr) {
            const std::size_t before = pages_.away(range);
            pages_.send_away(range);
            counters_.bytes_offloaded += (pages_.away(range) - before) * page_;
          }
        }
        done(std::move(failure));
      });
}

void CudaManagedSpace::populate(Range range) {
  std::unique_lock lock{mutex_};
  wait_for_drops(lock, range);
  const std::vector<Range> away = pages_.bring(range);
  if (away.empty()) return;
  give_room(away);
  api_.record(upkept_.get(), upkeep_.get());
  compute_.wait(upkept_.get());
}

// Provides near memory for pages to overwrite. A driver without discard moves their useless far
// content.
void CudaManagedSpace::give_room(const std::vector<Range>& ranges) {
  if (has_discard_) {
    api_.discard_and_prefetch_near(ranges, upkeep_.get());
  } else {
    for (const Range& range : ranges) api_.prefetch(range, MemoryTier::kNear, upkeep_.get());
  }
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
  if (tells_discards_) discarding_.enqueue([this, range] { drop(range); });
}

// Keeps pages that launches have populated again since the discard.
void CudaManagedSpace::drop(Range range) {
  std::vector<Range> dropped;
  std::exception_ptr failure;
  try {
    {
      const std::lock_guard lock{mutex_};
      dropped.reserve(range.size() / page_.count());
      dropping_.reserve(dropped.capacity());  // nothing may throw after pages are marked away
      std::ranges::copy(pages_.drop(range), std::back_inserter(dropped));
      dropping_ = dropped;
    }
    if (dropped.empty()) return;
    api_.discard(dropped, upkeep_.get());
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock{mutex_};
  if (failure == nullptr) {
    for (const Range& each : dropped) counters_.discarded_pages += each.size() / page_.count();
  }
  note(failure);
  dropping_.clear();
  dropped_.notify_all();
}

// Waits until pages of `range` are discarded, since a later discard would drop them again.
void CudaManagedSpace::wait_for_drops(std::unique_lock<std::mutex>& lock, Range range) {
  dropped_.wait(lock, [&] {
    return std::ranges::none_of(dropping_, [&](Range each) { return overlap(each, range); });
  });
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
  const std::lock_guard lock{mutex_};
  Counters counters = counters_;
  if (driver_ != nullptr) {
    const DriverTotals now = driver_->read();
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
