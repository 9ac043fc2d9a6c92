#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "um/stream.h"

namespace spillway::prefetch {

/// Moves that somebody waits for, all together.
///
/// Thread safety: one thread at a time; the moves may end on any.
class AwaitedMoves {
 public:
  /// What one more move calls when it ends.
  [[nodiscard]] um::Completion one_more() {
    const std::lock_guard lock{ends_->mutex};
    ++ends_->under_way;
    return [ends = ends_](std::exception_ptr failure) {
      const std::lock_guard guard{ends->mutex};
      if (ends->failure == nullptr) ends->failure = std::move(failure);
      --ends->under_way;
      ends->changed.notify_all();
    };
  }

  /// Blocks until all have ended. Throws: what the first that failed failed with.
  void wait() {
    std::unique_lock lock{ends_->mutex};
    ends_->changed.wait(lock, [this] { return ends_->under_way == 0; });
    if (ends_->failure != nullptr) std::rethrow_exception(ends_->failure);
  }

 private:
  struct Ends {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t under_way = 0;
    std::exception_ptr failure;
  };
  // Shared with the moves: one that could not be given to an engine leaves the others under way.
  std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
};

}  // namespace spillway::prefetch
