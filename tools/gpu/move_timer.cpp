#include "tools/gpu/move_timer.h"

#include <chrono>

#include "um/nanoseconds.h"

namespace spillway::gpu {
namespace {

constexpr um::Nanoseconds kQueued{20'000'000};

}  // namespace

MoveTime MoveTimer::time(const std::function<void(cudaStream_t)>& call, bool behind_work) {
  using Clock = std::chrono::steady_clock;
  if (behind_work) work_.queue(stream_.get(), kQueued);
  api_.record(begin_.get(), stream_.get());
  const Clock::time_point before = Clock::now();
  call(stream_.get());
  const Clock::time_point after = Clock::now();
  api_.record(end_.get(), stream_.get());
  api_.synchronize(end_.get());
  return {.stream_seconds = um::seconds(api_.elapsed(begin_.get(), end_.get())),
          .host_seconds = std::chrono::duration<double>{after - before}.count()};
}

void MoveTimer::run(const std::function<void(cudaStream_t)>& call) {
  call(stream_.get());
  api_.synchronize(stream_.get());
}

}  // namespace spillway::gpu
