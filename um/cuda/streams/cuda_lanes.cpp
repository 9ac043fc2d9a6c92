#include "um/cuda/streams/cuda_lanes.h"

#include <utility>

#include "um/cuda/driver/api.h"

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

}  // namespace spillway::um
