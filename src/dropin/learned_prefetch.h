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

/// Learned prefetch of one space: tells a Replayer what the program does, learns in a thread of its
/// own, and carries out the replayer's prefetch commands as hints.
///
/// Page faults are not told: what is not touched by spillway_um_touch() is not learned.
/// Whatever goes wrong in learning is no failure of the program's: learning is switched off then,
/// and status() says why.
/// Thread safety: every function may be called from any thread.
class LearnedPrefetch {
 public:
  /// The space outlives it.
  LearnedPrefetch(um::Space& space, const prefetch::LinkProfile& link);
  LearnedPrefetch(const LearnedPrefetch&) = delete;
  LearnedPrefetch& operator=(const LearnedPrefetch&) = delete;
  /// Waits for its moves, and for a replay plan that is being made.
  ~LearnedPrefetch();

  /// An iteration ends, and the next begins.
  void mark();
  /// The program got an allocation.
  void allocated(const std::byte* address, um::Bytes size);
  /// It frees one: called before, so that nothing moves it afterwards. What is no allocation's
  /// first address is ignored.
  void freeing(const void* address);
  /// It is about to use a range. Throws: um::NotAllocated.
  void touching(const void* address, um::Bytes size, um::Access access);

  /// Until what it was told so far has been learned and its moves so far have ended; also those
  /// that follow from their end, unless another thread has told it something since.
  void wait();

  [[nodiscard]] prefetch::ReplayerCounters counters() const;
  /// What it is doing, or why it does nothing: one clause.
  [[nodiscard]] std::string status() const;

 private:
  /// A move that the replayer commanded.
  struct Move {
    std::uint64_t ticket;
    std::uint64_t since;  ///< `told_since_` when it was commanded
  };

  /// As follow(), for what the program does. Requires: the mutex is held.
  template <typename Work>
  void tell(const Work& work);
  /// Does `work`, unless switched off; switches off when it throws. Requires: the mutex is held.
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

  mutable std::mutex mutex_;  // guards what follows, and the order of the hints; before all others
  prefetch::Replayer replayer_;
  um::Nanoseconds last_{0};
  std::uint64_t told_since_ = 0;  // how many waits had begun when the program last told something
  bool is_off_ = false;
  std::string why_off_;

  std::mutex queue_mutex_;  // guards what follows
  std::condition_variable changed_;
  // Moves of whose end the replayer has not been told, with room for those under way.
  std::vector<Move> ended_;
  std::uint64_t under_way_ = 0;
  // How many moves there are, by Move::since, whose end the replayer has not dealt with.
  std::map<std::uint64_t, std::uint64_t> open_;
  std::uint64_t replay_plans_wanted_ = 0;
  std::uint64_t replay_plans_over_ = 0;  // made, or not
  bool is_closed_ = false;
  bool is_told_ = true;                  // of ends: not when switched off
  std::atomic<std::uint64_t> waits_{0};  // that have begun; read without the mutex

  std::thread worker_;  // last: starts when all else is there
};

}  // namespace spillway::dropin
