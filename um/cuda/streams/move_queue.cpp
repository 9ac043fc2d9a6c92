#include "um/cuda/streams/move_queue.h"

#include <utility>

#include "um/cuda/driver/api.h"

namespace spillway::um {

MoveQueue::MoveQueue(CudaApi& api, const MoveLanes& lanes)
    : api_{api}, watching_{lanes.name + " end"}, issuing_{lanes.name} {
  streams_.reserve(lanes.streams);
  for (std::size_t i = 0; i < lanes.streams; ++i) streams_.emplace_back(api, lanes.name);
  events_.reserve(lanes.under_way);
  for (std::size_t i = 0; i < lanes.under_way; ++i) events_.emplace_back(api);
  for (Engine* const own : {&watching_, &issuing_}) own->enqueue([&api] { api.enter_thread(); });
}

std::uint64_t MoveQueue::enqueue(Call call, Completion done) {
  const std::lock_guard lock{mutex_};
  issuing_.enqueue([this, number = given_, call = std::move(call), done = std::move(done)] {
    issue(number, call, done);
  });
  return given_++;
}

void MoveQueue::make_wait(ComputeStreams& streams, std::uint64_t number) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return issued_ > number; });
  if (ended_ <= number) streams.wait(events_[number % events_.size()].get());
}

void MoveQueue::issue(std::uint64_t number, const Call& call, const Completion& done) {
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return number < ended_ + events_.size(); });
  }
  auto* const stream = streams_[number % streams_.size()].get();
  const std::size_t lane = number % events_.size();
  std::exception_ptr failure;
  try {
    call(stream);
    api_.record(events_[lane].get(), stream);
  } catch (...) {
    failure = std::current_exception();
    drain(api_, stream);  // the move may be in flight although its event is missing
  }
  {
    const std::lock_guard lock{mutex_};
    ++issued_;
    changed_.notify_all();
  }
  try {
    watching_.enqueue([this, lane, failure, done] { end(lane, failure, done); });
  } catch (...) {  // no memory: end it now, after earlier moves
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
  ++ended_;
  changed_.notify_all();
}

}  // namespace spillway::um
