#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>

#include "um/completion.h"

namespace spillway::gpu {

/// Waits for moves that were started, and knows when the last of them ended.
///
/// Thread safety: completions may be called by any thread; all else is one thread's.
class Moves {
 public:
  using Clock = std::chrono::steady_clock;

  Moves() = default;
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;
  /// Waits for all moves.
  ~Moves() { wait(); }

  /// What the next move is to be started with: it must be called, once.
  [[nodiscard]] um::Completion completion();

  /// Waits for all moves; when the last one ended. Throws: what a move failed with.
  [[nodiscard]] Clock::time_point end();

 private:
  void wait();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
  Clock::time_point end_ = Clock::now();
  std::exception_ptr failure_;
};

}  // namespace spillway::gpu
