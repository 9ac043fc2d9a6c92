#include "um/cuda/streams/cuda_event.h"

#include "um/cuda/driver/check.h"
#include "um/cuda/driver/drain.h"

namespace spillway::um {

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
  } catch (const CudaError&) {  // as the class says
  }
}

}  // namespace spillway::um
