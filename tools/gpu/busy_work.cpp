#include "tools/gpu/busy_work.h"

#include <algorithm>

#include "um/cuda/driver/handles.h"

namespace spillway::gpu {
namespace {

constexpr std::int64_t kMaxCopies = 10'000;

}  // namespace

BusyWork::BusyWork(um::CudaApi& api, um::Memory& device, um::Bytes size)
    : api_{api}, from_{device, size}, to_{device, size} {
  constexpr int kCopies = 32;
  const um::StreamHandle stream{api, "busy"};
  const um::EventHandle begin{api};
  const um::EventHandle end{api};
  copy(stream.get());  // warms up
  api.record(begin.get(), stream.get());
  for (int i = 0; i < kCopies; ++i) copy(stream.get());
  api.record(end.get(), stream.get());
  api.synchronize(end.get());
  copy_time_ = api.elapsed(begin.get(), end.get()) / kCopies;
}

void BusyWork::copy(cudaStream_t stream) { api_.copy(from_.bytes(), to_.data(), stream); }

void BusyWork::queue(cudaStream_t stream, um::Nanoseconds time) {
  const std::int64_t copies =
      copy_time_.count() > 0 ? std::min(time / copy_time_ + 1, kMaxCopies) : 1;
  for (std::int64_t i = 0; i < copies; ++i) copy(stream);
}

}  // namespace spillway::gpu
