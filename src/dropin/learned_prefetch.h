#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "prefetch/learned/learn.h"
#include "prefetch/learned/replayer.h"
#include "prefetch/profile.h"
#include "src/dropin/block_pieces.h"
#include "um/bytes.h"
#include "um/dropin/space.h"
#include "um/hints.h"

namespace spillway::dropin {

/// Learned prefetch of one space: reports the program's actions to a Replayer, learns in a thread
/// of its own, and issues the replayer's prefetch commands as hints.
///
/// Page faults are not reported: only ranges passed to spillway_um_touch() are learned. A failure
/// of learning does not fail the program: it switches learning off, and status() says why. Thread
/// safety: any thread may call every function.
class LearnedPrefetch {
 public:
  /// The space outlives this object.
  LearnedPrefetch(um::Space& space, const prefetch::LinkProfile& link);
  LearnedPrefetch(const LearnedPrefetch&) = delete;
  LearnedPrefetch& operator=(const LearnedPrefetch&) = delete;
  /// Waits for its moves and for a replay plan that is being made.
  ~LearnedPrefetch();

  /// Ends an iteration and begins the next.
  void mark();
  /// Reports a new allocation.
  void allocated(const std::byte* address, um::Bytes size);
  /// Reports a free, before it happens, so that nothing moves the allocation afterwards. Ignores an
  /// address that is not the first of an allocation.
  void freeing(const void* address);
  /// Reports that the program is about to use a range. Throws: um::NotAllocated.
  void touching(const void* address, um::Bytes size, um::Access access);

  /// Waits until all reports so far are learned and all moves so far have ended. Also waits for the
  /// moves that follow from their end, unless another thread has reported something since.
  void wait();

  [[nodiscard]] prefetch::ReplayerCounters counters() const;
  /// Returns one clause: the current activity, or why there is none.
  [[nodiscard]] std::string status() const;

 private:
  /// A move requested by the replayer.
  struct Move {
    std::uint64_t ticket;
    std::uint64_t since;  ///< value of `told_since_` at the request
  };

  /// Like follow(), for actions of the program. Requires: the caller holds the mutex.
  template <typename Work>
  void tell(const Work& work);
  /// Calls `work` unless learning is off; switches learning off when it throws. Requires: the
  /// caller holds the mutex.
  template <typename Work>
  void follow(const Work& work);
  void switch_off(const char* why) noexcept;
  void work();
  [[nodiscard]] std::vector<Move> take_ended();
  void complete();
  void close(std::uint64_t since) noexcept;
  void learn_now();
  void issue(const std::vector<prefetch::PrefetchCommand>& commands);
  void end(Move move) noexcept;
  [[nodiscard]] um::Nanoseconds now();
  [[nodiscard]] std::uint64_t id_of(const um::Range& block) const;

  um::Space& space_;
  const PieceSize size_;
  const prefetch::LearnOptions options_;

  /// Guards the members below and the order of hints; locked before all other mutexes.
  mutable std::mutex mutex_;
  prefetch::Replayer replayer_;
  um::Nanoseconds last_{0};
  std::uint64_t told_since_ = 0;  // number of waits begun before the program's latest report
  bool is_off_ = false;
  std::string why_off_;

  std::mutex queue_mutex_;  // guards the members below
  std::condition_variable changed_;
  // Ended moves not yet reported to the replayer, with capacity for those in flight.
  std::vector<Move> ended_;
  std::uint64_t under_way_ = 0;
  // Moves with an end that the replayer has not processed, counted by Move::since.
  std::map<std::uint64_t, std::uint64_t> open_;
  std::uint64_t replay_plans_wanted_ = 0;
  std::uint64_t replay_plans_over_ = 0;  // finished, successfully or not
  bool is_closed_ = false;
  bool is_told_ = true;                  // whether ends are recorded; false when learning is off
  std::atomic<std::uint64_t> waits_{0};  // waits begun; read without the mutex

  std::thread worker_;  // last: starts when all other members exist
};

}  // namespace spillway::dropin
