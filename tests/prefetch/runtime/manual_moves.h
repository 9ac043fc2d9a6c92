#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "um/stream.h"

namespace spillway::prefetch::testing {

/// One direction of a link with moves that end when the test says so.
///
/// Thread safety: all functions may be called from any thread.
class ManualMoves {
 public:
  /// As PlanWalker::Issue.
  bool issue(std::uint32_t index, um::Completion done) {
    const std::lock_guard lock{mutex_};
    changed_.notify_all();
    if (refuses_) {
      ++refused_;
      return false;
    }
    issued_.push_back(index);
    under_way_.push_back(std::move(done));
    return true;
  }

  void refuse(bool refuses) {
    const std::lock_guard lock{mutex_};
    refuses_ = refuses;
  }
  void wait_until_refused() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return refused_ > 0; });
  }
  void wait_until_issued(std::size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return issued_.size() >= count; });
  }
  void finish_next(std::exception_ptr error = nullptr) { take(true)(std::move(error)); }
  /// Waits for a move in flight, and ends it.
  void wait_and_finish_next() {
    {
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [&] { return !under_way_.empty(); });
    }
    finish_next();
  }
  void finish_last() { take(false)(nullptr); }
  [[nodiscard]] std::vector<std::uint32_t> issued() {
    const std::lock_guard lock{mutex_};
    return issued_;
  }

 private:
  um::Completion take(bool is_first) {
    const std::lock_guard lock{mutex_};
    const auto place = is_first ? under_way_.begin() : under_way_.end() - 1;
    um::Completion done = std::move(*place);
    under_way_.erase(place);
    return done;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool refuses_ = false;
  int refused_ = 0;
  std::vector<std::uint32_t> issued_;
  std::deque<um::Completion> under_way_;
};

}  // namespace spillway::prefetch::testing
