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

/// The fate of near pages with dead content.
enum class DeadContent : std::uint8_t {
  kIsDropped,              ///< the driver drops it; the page is charged until it has
  kStaysUntilOverwritten,  ///< in memory that the slab has beside the budget: it is not charged
};

/// Tracks which pages of a managed slab are near, as a result of all hints so far, and charges a
/// ledger for them. This is tracked here because no driver reports it.
///
/// A page is *away*; *live* (near, with content or about to get it); *retired* (near, and only
/// launches already enqueued need its content); or *dropping* (near until the driver has dropped
/// it). Launches execute in order. A retired page can therefore become live again without a driver
/// call, and must not be dropped then.
///
/// Thread safety: none.
class SlabPages {
 public:
  /// `near` counts the near pages of all slabs. The ledgers outlive this object. Requires: `slab`
  /// consists of whole pages.
  SlabPages(Range slab, Bytes page, Ledger& ledger, Ledger& near, DeadContent dead);
  SlabPages(const SlabPages&) = delete;
  SlabPages& operator=(const SlabPages&) = delete;
  /// Releases every charge.
  ~SlabPages();

  /// Pages that bring() has made live: ranges in order, merged where adjacent.
  struct Brought {
    std::vector<Range> away;     ///< were away
    std::vector<Range> retired;  ///< were retired
  };

  // All of these require: `range` consists of whole pages of the slab.

  /// Makes all pages live. Requires: none is dropping. Throws: OutOfMemory; then nothing has
  /// changed.
  [[nodiscard]] Brought bring(Range range);
  /// Undoes bring(), which no other call has followed for these pages.
  void take_back(const Brought& brought) noexcept;
  /// Returns the charge that bring() adds.
  [[nodiscard]] Bytes cost(Range range) const;
  /// Returns the charge of pages that are not live, which ends when they are dropped.
  [[nodiscard]] Bytes dead() const { return dead_ * Bytes{page_}; }
  /// Returns whether the driver still has to drop a page of `range`.
  [[nodiscard]] bool is_dropping(Range range) const;
  /// Makes live pages retired. One end_life() must follow for each.
  void retire(Range range);
  /// Ends a life of each near page, and retires live pages that were not retired. Requires: the
  /// launches that were in flight have ended.
  void end_life(Range range);
  /// Makes retired pages dropping if no launch needs them. Returns them for the driver to drop.
  [[nodiscard]] std::vector<Range> drop(Range range);
  /// Makes dropping pages away, since the driver has dropped them.
  void end_drop(std::span<const Range> ranges) noexcept;
  /// Makes live pages away after their content has moved far.
  void send_away(Range range);
  /// Returns how many bytes of `range` are on live pages. Requires: `range` lies in the slab; it
  /// may begin and end within a page.
  [[nodiscard]] Bytes live_bytes(Range range) const;
  /// Returns how many pages of `range` are away.
  [[nodiscard]] std::size_t away(Range range) const;

 private:
  enum class State : std::uint8_t { kAway, kLive, kRetired, kDropping };
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
  [[nodiscard]] std::vector<Range> ranges_in(Span span, State state) const;
  [[nodiscard]] bool is_charged(State state) const;
  void change(Page& page, State to) noexcept;

  Range slab_;
  std::size_t page_;
  Ledger& ledger_;
  Ledger& near_;
  const DeadContent dead_content_;
  std::vector<Page> pages_;
  std::uint64_t dead_ = 0;  // pages that are charged and not live
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
    bool is_charged = false;
    Bytes promised;         // the charge that it waits for
    std::size_t pages = 0;  // pages that were away
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
  [[nodiscard]] bool waits_for_discards() const override { return tells_discards_; }
  void populate(Range range) override;
  void retire(Range range) override;
  void discard(Range range) override;
  void advise(Range range, Advice advice) override { api_.advise(range, advice); }
  [[nodiscard]] FarSide* far_side() override { return &far_side_; }
  void begin_use(std::span<const Use> operands) override;
  void end_use(std::span<const Use> /*operands*/) noexcept override {}
  void check() override;

  void bring(Range range, Completion done);
  [[nodiscard]] bool has_room(Range range) const;
  [[nodiscard]] bool will_have_room(Range range, Bytes promised) const;
  void wait_for_room(std::unique_lock<std::mutex>& lock, Range range, Bytes promised);
  [[noreturn]] void refuse(Range range) const;
  void bring_now(Arrival& arrival, SlabPages::Brought& brought);
  void fetch(Arrival& arrival, cudaStream_t stream);
  void move(Range range, MemoryTier tier, cudaStream_t stream);
  void end_arrival(const std::exception_ptr& failure);
  void send_away(Range range, Completion done);
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
  Ledger& ledger_;
  Slab slab_;
  FarRange far_side_;  // pages in the host's memory, which the processor may access there

  StreamHandle upkeep_;  // near memory for pages to overwrite, and discards
  EventHandle upkept_;
  EventHandle discarded_;  // used by discarding_ only
  std::mutex populating_;  // one populate() at a time; locked before mutex_
  // Guards the members below; never held during a driver call, so that moves can end meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // room, or a failure
  SlabPages pages_;
  std::deque<Arrival> arriving_;  // prefetches to near that have not ended, in order
  Bytes promised_;                // charges that these wait for
  std::exception_ptr failure_;    // of the first failed move
  Counters counters_;

  Engine discarding_;  // last: the work of the engine and queues uses the other members
  MoveQueue in_;
  MoveQueue out_;
};

}  // namespace spillway::um
