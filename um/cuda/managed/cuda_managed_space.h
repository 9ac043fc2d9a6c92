#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/cuda/driver/driver_counters.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/cuda/streams/move_queue.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// Tracks which pages of a managed slab are near, as a result of all hints so far, and charges a
/// ledger for live pages. This is tracked here because no driver reports it.
///
/// A page is *away*; *live* (near, with content or about to get it); or *retired* (near, and only
/// launches already enqueued need its content). Launches execute in order. A retired page can
/// therefore become live again without a driver call, and must not be dropped then.
///
/// Thread safety: none.
class SlabPages {
 public:
  /// The ledger outlives this object. Requires: `slab` consists of whole pages.
  SlabPages(Range slab, Bytes page, Ledger& ledger);
  SlabPages(const SlabPages&) = delete;
  SlabPages& operator=(const SlabPages&) = delete;
  /// Releases every charge.
  ~SlabPages();

  // All of these require: `range` consists of whole pages of the slab.

  /// Makes all pages live. Returns the ranges that were away, in order, merged where adjacent.
  /// Throws: OutOfMemory; then nothing has changed.
  [[nodiscard]] std::vector<Range> bring(Range range);
  /// Makes live pages retired. One end_life() must follow for each.
  void retire(Range range);
  /// Ends a life of each near page, and retires live pages that were not retired. Requires: the
  /// launches that were in flight have ended.
  void end_life(Range range);
  /// Makes retired pages away if no launch needs them. Returns them for the driver to drop.
  [[nodiscard]] std::vector<Range> drop(Range range);
  /// Makes live pages away after their content has moved far.
  void send_away(Range range);
  /// Returns how many bytes of `range` are on live pages. Requires: `range` lies in the slab; it
  /// may begin and end within a page.
  [[nodiscard]] Bytes live_bytes(Range range) const;
  /// Returns how many pages of `range` are away.
  [[nodiscard]] std::size_t away(Range range) const;

 private:
  enum class State : std::uint8_t { kAway, kLive, kRetired };
  struct Page {
    State state = State::kAway;
    std::uint32_t lives_due = 0;  // calls of retire() still without an end_life()
  };
  struct Span {
    std::size_t begin;
    std::size_t end;
  };

  [[nodiscard]] Span pages_of(Range range) const;
  template <class Pred>
  [[nodiscard]] std::vector<Range> ranges_where(Span span, const Pred& pred) const;

  Range slab_;
  std::size_t page_;
  Ledger& ledger_;
  std::vector<Page> pages_;
};

/// The GPU's unified memory: one slab, moved by the driver's hints. Only ProgramStreams calls one
/// of them, too. um/cuda/README.md explains which call goes to which stream.
class CudaManagedSpace final : public ManagedSpace, private Hints {
 public:
  /// The arguments outlive this object; `driver` may be null. Throws: Error when the options ask
  /// for what a GPU cannot do, or for more memory than available.
  CudaManagedSpace(CudaApi& api, CudaManagedMemory& memory, ComputeStreams& compute,
                   DriverCounters* driver, const ManagedOptions& options, Ledger& ledger);
  CudaManagedSpace(const CudaManagedSpace&) = delete;
  CudaManagedSpace& operator=(const CudaManagedSpace&) = delete;
  ~CudaManagedSpace() override;

  [[nodiscard]] Range slab() override { return slab_.range; }
  [[nodiscard]] Hints& hints() override { return *this; }
  [[nodiscard]] Counters counters() const override;
  [[nodiscard]] Bytes near_bytes(Range range) const override;
  [[nodiscard]] std::string description() const override;

 private:
  // A prefetch to near memory.
  struct Arrival {
    Range range;
    std::uint64_t number = 0;  // number in in_
  };
  // Owns the slab's memory.
  struct Slab {
    Slab(CudaManagedMemory& from, const ManagedOptions& options);
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;
    ~Slab();
    CudaManagedMemory& memory;
    Range range;
  };

  void prefetch(Range range, MemoryTier tier, Completion done) override;
  [[nodiscard]] bool lets_launches_wait(Range range) override;
  void populate(Range range) override;
  void retire(Range range) override;
  void discard(Range range) override;
  void advise(Range range, Advice advice) override { api_.advise(range, advice); }
  [[nodiscard]] FarSide* far_side() override { return &far_side_; }
  void begin_use(std::span<const Use> operands) override;
  void end_use(std::span<const Use> /*operands*/) noexcept override {}
  void check() override;

  void bring(Range range, Completion done);
  void end_arrival(std::size_t pages, const std::exception_ptr& failure);
  void send_away(Range range, Completion done);
  void wait_for_drops(std::unique_lock<std::mutex>& lock, Range range);
  void give_room(const std::vector<Range>& ranges);
  void drop(Range range);
  void note(std::exception_ptr failure);

  CudaApi& api_;
  ComputeStreams& compute_;
  DriverCounters* const driver_;
  const DriverTotals driver_before_;
  const Bytes page_;
  const bool has_discard_;
  const bool tells_discards_;
  Slab slab_;
  FarRange far_side_;  // pages in the host's memory, which the processor may access there

  // Guards the members below and the order of calls that provide near memory.
  mutable std::mutex mutex_;
  std::condition_variable dropped_;
  SlabPages pages_;
  std::vector<Range> dropping_;   // away, but not yet discarded by the driver
  std::deque<Arrival> arriving_;  // prefetches to near that have not ended, in order
  std::exception_ptr failure_;    // of the first failed move
  StreamHandle upkeep_;           // near memory for pages to overwrite, and discards
  EventHandle upkept_;
  Counters counters_;

  Engine discarding_;  // last: the work of the engine and queues uses the other members
  MoveQueue in_;
  MoveQueue out_;
};

}  // namespace spillway::um
