#include "um/cuda/managed/cuda_managed_space.h"

#include <string>
#include <utility>

#include "um/cuda/driver/checked_options.h"
#include "um/cuda/driver/drain.h"
#include "um/error.h"

namespace spillway::um {

// A prefetch to the device returns before it ends: the next one is issued meanwhile, on another
// stream, so that it too meets an idle one. A prefetch to the host takes its thread as long as the
// move: a second one could not be issued earlier.
constexpr std::size_t kPrefetchesUnderWay = 2;

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
      discards_{options.gpu.discards},
      has_discard_{api.facts().has_discard},
      slab_{memory, checked(options, api.facts())},
      pages_{slab_.range, options.page, ledger},
      upkeep_{api, "um upkeep"},
      upkept_{api},
      in_{api, {.name = "um in", .streams = kPrefetchesUnderWay, .under_way = kPrefetchesUnderWay}},
      out_{api, {.name = "um out"}} {}

CudaManagedSpace::~CudaManagedSpace() {
  drain(api_, upkeep_.get());  // the slab must not go before its last discard
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
  std::size_t pages = 0;
  {
    const std::lock_guard lock{mutex_};
    pages = pages_.away(range);
    static_cast<void>(pages_.bring(range));
  }
  in_.enqueue(
      [this, range](cudaStream_t stream) { api_.prefetch(range, MemoryTier::kNear, stream); },
      [this, pages, done = std::move(done)](std::exception_ptr failure) {
        {
          const std::lock_guard lock{mutex_};
          note(failure);
          if (failure == nullptr) counters_.bytes_prefetched += pages * page_;
        }
        done(std::move(failure));
      });
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
  const std::lock_guard lock{mutex_};
  const std::vector<Range> away = pages_.bring(range);
  if (away.empty()) return;
  give_room(away);
  api_.record(upkept_.get(), upkeep_.get());
  compute_.wait(upkept_.get());
}

// Content that is far is of no use: with a driver that cannot discard, it is moved all the same.
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

void CudaManagedSpace::discard(Range range) {
  const std::lock_guard lock{mutex_};
  const std::vector<Range> dropped = pages_.discard(range, !discards_ || !has_discard_);
  if (dropped.empty()) return;
  for (const Range& each : dropped) counters_.discarded_pages += each.size() / page_.count();
  api_.discard(dropped, upkeep_.get());
}

// The driver needs no declaration of what a launch uses.
void CudaManagedSpace::begin_use(std::span<const Use> /*operands*/) { check(); }

void CudaManagedSpace::check() {
  const std::lock_guard lock{mutex_};
  if (failure_ != nullptr) std::rethrow_exception(failure_);
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
  const char* dead = !has_discard_ ? "no discards: the driver has none"
                     : discards_   ? "discards"
                                   : "no discards";
  return "CUDA, " + std::to_string(page_ / 1_MiB) + " MiB pages, " + dead;
}

}  // namespace spillway::um
