#include "src/bench/link/repeated_clear.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

constexpr um::Bytes kCleared{64};  // the least that can be

}  // namespace

RepeatedClear::RepeatedClear(um::Stream& stream, um::Memory& memory, const Backend& backend)
    : block_{memory, kCleared}, stream_{stream}, backend_{backend} {
  stream_.enqueue([this] { repeat(); });
}

RepeatedClear::~RepeatedClear() {
  ask_to_stop();
  try {
    stream_.synchronize();
  } catch (...) {  // another exception is on its way, or stop() has thrown this one
  }
}

void RepeatedClear::repeat() {
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [this] { return !is_under_way_; });
      if (is_stopped_) return;
      is_under_way_ = true;
      has_counted_throughout_ = counts_;
    }
    const Clock::time_point begin = Clock::now();
    backend_.clear(block_.bytes());
    const Seconds call = Clock::now() - begin;
    {
      const std::lock_guard lock{mutex_};
      begin_ = begin;
      call_ = call;
    }
    stream_.notify([this](Clock::time_point moment) { end_launch(moment); });
  }
}

void RepeatedClear::end_launch(Clock::time_point moment) {
  const std::lock_guard lock{mutex_};
  is_under_way_ = false;
  if (has_counted_throughout_ && counts_) {
    times_.call.add(call_);
    times_.whole.add(std::max<Seconds>(call_, moment - begin_));
  }
  changed_.notify_all();
}

void RepeatedClear::count(bool counts) {
  const std::lock_guard lock{mutex_};
  counts_ = counts;
  if (!counts) has_counted_throughout_ = false;
}

void RepeatedClear::wait_for(std::size_t launches, Seconds max) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, max, [&] { return times_.call.size() >= launches; });
}

std::size_t RepeatedClear::counted() const {
  const std::lock_guard lock{mutex_};
  return times_.call.size();
}

void RepeatedClear::ask_to_stop() {
  const std::lock_guard lock{mutex_};
  is_stopped_ = true;
}

RepeatedClear::Times RepeatedClear::stop() {
  ask_to_stop();
  stream_.synchronize();
  return std::move(times_);
}

}  // namespace spillway
