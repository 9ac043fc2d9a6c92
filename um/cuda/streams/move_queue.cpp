#include "um/cuda/streams/move_queue.h"

#include <utility>

#include "um/cuda/driver/drain.h"

namespace spillway::um {

MoveQueue::MoveQueue(CudaApi& api, const MoveLanes& lanes)
    : api_{api}, free_{lanes.under_way}, watching_{lanes.name + " end"}, issuing_{lanes.name} {
  streams_.reserve(lanes.streams);
  for (std::size_t i = 0; i < lanes.streams; ++i) streams_.emplace_back(api, lanes.name);
  events_.reserve(lanes.under_way);
  for (std::size_t i = 0; i < lanes.under_way; ++i) events_.emplace_back(api);
}

void MoveQueue::enqueue(Call call, Completion done) {
  issuing_.enqueue([this, call = std::move(call), done = std::move(done)] { issue(call, done); });
}

void MoveQueue::issue(const Call& call, const Completion& done) {
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  auto* const stream = streams_[issued_ % streams_.size()].get();
  const std::size_t lane = issued_ % events_.size();
  ++issued_;
  std::exception_ptr failure;
  try {
    call(stream);
    api_.record(events_[lane].get(), stream);
  } catch (...) {
    failure = std::current_exception();
    drain(api_, stream);  // the move may be under way all the same: only its event is missing
  }
  try {
    watching_.enqueue([this, lane, failure, done] { end(lane, failure, done); });
  } catch (...) {  // no memory: now, after those before
    watching_.drain();
    end(lane, failure, done);
  }
}

void MoveQueue::end(std::size_t lane, std::exception_ptr failure, const Completion& done) {
  if (!failure) {
    try {
      api_.synchronize(events_[lane].get());
    } catch (...) {
      failure = std::current_exception();
    }
  }
  done(std::move(failure));
  const std::lock_guard lock{mutex_};
  ++free_;
  changed_.notify_one();
}

}  // namespace spillway::um
