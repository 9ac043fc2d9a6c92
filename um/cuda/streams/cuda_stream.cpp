#include "um/cuda/streams/cuda_stream.h"

#include <utility>

#include "um/cuda/driver/api.h"
#include "um/cuda/driver/check.h"

namespace spillway::um {
namespace {

constexpr Lanes::Mark kBegin = 0;  // the first mark

}  // namespace

CudaLanes::CudaLanes(CudaApi& api, cudaStream_t compute)
    : api_{api}, compute_{compute}, in_{api, "step in"}, out_{api, "step out"} {}

CudaLanes::~CudaLanes() { drain_all(); }

void CudaLanes::drain_all() noexcept {
  for (cudaStream_t each : {compute_, in_.get(), out_.get()}) drain(api_, each);
}

cudaStream_t CudaLanes::stream(Lane lane) const {
  switch (lane) {
    case Lane::kIn:
      return in_.get();
    case Lane::kOut:
      return out_.get();
    case Lane::kCompute:
      break;
  }
  return compute_;
}

void CudaLanes::run(const std::function<void()>& give) {
  try {
    fork_and_join(give);
  } catch (...) {
    drain_all();  // work submitted before the failure
    throw;
  }
}

void CudaLanes::keep(const std::function<void()>& give) {
  kept_.reset();
  api_.begin_capture(compute_);
  try {
    fork_and_join(give);
  } catch (...) {
    api_.abandon_capture(compute_);
    throw;
  }
  kept_.emplace(api_, api_.end_capture(compute_));
}

void CudaLanes::run_kept() { api_.launch(kept_->get(), compute_); }

void CudaLanes::fork_and_join(const std::function<void()>& give) {
  marks_ = 0;
  const Mark begin = mark(Lane::kCompute);
  wait(Lane::kIn, begin);
  wait(Lane::kOut, begin);
  give();
  wait(Lane::kCompute, mark(Lane::kIn));
  wait(Lane::kCompute, mark(Lane::kOut));
}

void CudaLanes::copy(Lane lane, std::span<const std::byte> from, std::byte* to) {
  api_.copy(from, to, stream(lane));
}

Lanes::Mark CudaLanes::mark(Lane lane) {
  if (marks_ == events_.size()) events_.emplace_back(api_);
  api_.record(events_[marks_].get(), stream(lane));
  return marks_++;
}

void CudaLanes::wait(Lane lane, Mark mark) { api_.wait(stream(lane), events_[mark].get()); }

Nanoseconds CudaLanes::time(Mark mark) {
  return api_.elapsed(events_[kBegin].get(), events_[mark].get());
}

void CudaEvent::record(cudaStream_t stream) {
  const auto become = [this](State state) {
    const std::lock_guard lock{mutex_};
    state_ = state;
    changed_.notify_all();
  };
  try {
    api_->record(event_.get(), stream);
  } catch (...) {
    drain(*api_, stream);
    become(State::kFailed);
    throw;
  }
  become(State::kRecorded);
}

CudaEvent::State CudaEvent::wait_until_recorded() const {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return state_ != State::kAhead; });
  return state_;
}

void CudaEvent::make_wait(cudaStream_t stream) const {
  if (wait_until_recorded() == State::kRecorded) api_->wait(stream, event_.get());
}

bool CudaEvent::has_fired() const {
  {
    const std::lock_guard lock{mutex_};
    if (state_ != State::kRecorded) return state_ == State::kFailed;
  }
  try {
    return api_->has_fired(event_.get());
  } catch (const CudaError&) {
    return false;
  }
}

void CudaEvent::wait() const {
  if (wait_until_recorded() == State::kFailed) return;
  try {
    api_->synchronize(event_.get());
  } catch (const CudaError&) {  // see the class: returns when the driver fails
  }
}

CudaStream::CudaStream(CudaApi& api, ComputeStreams& siblings, const std::string& name)
    : api_{api},
      siblings_{siblings},
      stream_{api, name},
      origin_{api},
      watching_{name + " end"},
      working_{name} {
  for (Engine* const own : {&watching_, &working_}) own->enqueue([&api] { api.enter_thread(); });
  set_clock();
  siblings_.add(native());
}

CudaStream::~CudaStream() {
  try {
    synchronize();
  } catch (...) {  // no synchronize() asked for it
  }
  siblings_.remove(native());
}

void CudaStream::set_clock() {
  api_.record(origin_.get(), native());
  origin_time_ = Clock::now();
}

void CudaStream::fail(std::exception_ptr failure) noexcept {
  const std::lock_guard lock{mutex_};
  if (!failure_) failure_ = std::move(failure);
}

// Allocates nothing itself.
template <class Work>
void CudaStream::do_or_fail(const Work& work) noexcept {
  try {
    work();
  } catch (...) {
    fail(std::current_exception());
  }
}

void CudaStream::do_unless_failed(const std::function<void()>& work) {
  {
    const std::lock_guard lock{mutex_};
    if (failure_) return;
  }
  do_or_fail(work);
}

void CudaStream::enqueue(std::function<void()> work) {
  working_.enqueue([this, work = std::move(work)] { do_unless_failed(work); });
}

std::shared_ptr<const Event> CudaStream::record() {
  auto event = std::make_shared<CudaEvent>(api_);
  if (working_.is_current()) {
    do_or_fail([&] { event->record(native()); });
    return event;
  }
  working_.enqueue([this, event] { do_or_fail([&] { event->record(native()); }); });
  return event;
}

void CudaStream::wait(std::shared_ptr<const Event> event) {
  working_.enqueue([this, event = std::move(event)] {
    if (const auto* fired_by_gpu = dynamic_cast<const CudaEvent*>(event.get())) {
      do_or_fail([&] { fired_by_gpu->make_wait(native()); });
    } else {
      event->wait();
    }
  });
}

void CudaStream::synchronize() {
  try {
    working_.enqueue([this] { finish(); });
  } catch (...) {  // no memory: the caller unwinds and frees what the work uses
    working_.drain();
    do_or_fail([this] { api_.synchronize(native()); });
    watching_.drain();
    throw;
  }
  working_.drain();
  std::exception_ptr failure;
  {
    const std::lock_guard lock{mutex_};
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

/// Waits for the GPU and the notices, and restarts the clock. The time between two events is a
/// float, which is exact to the microsecond only for short times.
void CudaStream::finish() {
  do_or_fail([this] { api_.synchronize(native()); });
  watching_.drain();
  do_or_fail([this] { set_clock(); });
}

void CudaStream::notify(Notice then) {
  if (working_.is_current()) {
    ask_for_notice(then);
  } else {
    working_.enqueue([this, then = std::move(then)] { ask_for_notice(then); });
  }
}

void CudaStream::ask_for_notice(const Notice& then) noexcept {
  cudaEvent_t event = nullptr;  // none that is not recorded
  do_or_fail([&] {
    auto* const taken = take_event();
    api_.record(taken, native());
    event = taken;
  });
  if (event == nullptr) drain(api_, native());  // a notice means that the work so far has ended
  try {
    watching_.enqueue([this, event, then] { give_notice(event, then); });
  } catch (...) {  // no memory: call it now, after earlier notices
    fail(std::current_exception());
    watching_.drain();
    give_notice(event, then);
  }
}

void CudaStream::give_notice(cudaEvent_t event, const Notice& then) noexcept {
  Clock::time_point moment = Clock::now();
  do_or_fail([&] {
    if (event == nullptr) return;
    api_.synchronize(event);
    moment = origin_time_ +
             std::chrono::duration_cast<Clock::duration>(api_.elapsed(origin_.get(), event));
  });
  do_or_fail([&] { then(moment); });
  const std::lock_guard lock{mutex_};
  if (event != nullptr) free_events_.push_back(event);  // take_event() reserved the space
}

cudaEvent_t CudaStream::take_event() {
  const std::lock_guard lock{mutex_};
  if (free_events_.empty()) {
    free_events_.reserve(events_.size() + 1);
    events_.emplace_back(api_);
    return events_.back().get();
  }
  auto* const event = free_events_.back();
  free_events_.pop_back();
  return event;
}

std::unique_ptr<Lanes> CudaStream::make_lanes() {
  return std::make_unique<CudaLanes>(api_, native());
}

void CudaStream::read(std::span<const std::byte> near, std::span<std::byte> into) {
  api_.copy(near, into.data(), native());
  api_.synchronize(native());
}

void CudaStream::write(std::span<const std::byte> from, std::span<std::byte> near) {
  api_.copy(from, near.data(), native());
}

void CudaStream::label(std::string_view name) {
  if (is_labelled_) api_.end_label();
  is_labelled_ = !name.empty();
  if (is_labelled_) api_.begin_label(std::string{name});
}

}  // namespace spillway::um
