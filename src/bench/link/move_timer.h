#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "src/bench/link/transfer.h"
#include "um/stream.h"

namespace spillway {

/// Times moves that end by themselves: from the first call to the last completion.
class MoveTimer {
 public:
  /// Calls `begin(completion)`, which begins a move.
  template <typename Begin>
  void start(const Begin& begin) {
    const Clock::time_point called = Clock::now();
    if (moves_.empty()) begin_ = called;
    // Shared: the move keeps it, however this ends.
    const auto ended = std::make_shared<std::promise<Clock::time_point>>();
    moves_.push_back(ended->get_future());
    begin([ended](std::exception_ptr error) { tell(*ended, std::move(error)); });
    call_ += Clock::now() - called;
  }

  /// Waits for all moves. Throws: what the first that failed did.
  [[nodiscard]] TransferTime wait() {
    Clock::time_point last = begin_;
    for (auto& move : moves_) last = std::max(last, move.get());
    return {.whole = last - begin_, .call = call_};
  }

 private:
  using Clock = std::chrono::steady_clock;

  static void tell(std::promise<Clock::time_point>& ended, std::exception_ptr error) {
    if (error != nullptr) {
      ended.set_exception(std::move(error));
    } else {
      ended.set_value(Clock::now());
    }
  }

  Clock::time_point begin_;
  Seconds call_{0};
  std::vector<std::future<Clock::time_point>> moves_;
};

}  // namespace spillway
