#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>

#include "src/execute/executor.h"
#include "tests/sleeping_threads.h"
#include "tests/src/gpu_like_backend.h"
#include "tests/src/small_training.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"

namespace spillway {
namespace {

// Nothing is run in it.
class NoMemory final : public prefetch::StepMemory {
 public:
  void begin_step() override {}
  void begin_run(prefetch::Position /*position*/) override {}
  [[nodiscard]] std::byte* address(prefetch::DataId /*id*/) const override { return nullptr; }
  [[nodiscard]] std::byte* workspace() const override { return nullptr; }
  void after_launch(prefetch::Position /*position*/) override {}
  void end_run(prefetch::Position /*position*/) override {}
  void fail(std::exception_ptr /*error*/) override {}
  void end_step() override {}
  [[nodiscard]] prefetch::Timeline moves() const override { return {}; }
};

// The stream's thread gets to the kernels only when everybody waits for it.
TEST(GpuExecutor, HasItsKernelsWhenItHasBeenMade) {
  auto api = std::make_unique<um::RecordingApi>();
  um::RecordedGpu& gpu = *api;
  um::CudaDevice device{std::move(api), {}};
  const auto compute = device.make_cuda_stream("compute");
  const GpuLikeBackend backend{device.batch_memory(), gpu, compute->native()};
  const Step step = make_training_step(test::small_network(), backend, {.batch = 2});
  const prefetch::Plan plan{.runs = prefetch::runs_in_order(step.graph)};
  NoMemory memory;
  compute->enqueue([&] {
    backend.start_threads();
    while (!test::all_others_sleep()) std::this_thread::yield();
  });
  const Executor executor{step, plan, backend, memory, *compute, {}};
  EXPECT_EQ(backend.prepared(), step.launches.size());
}

}  // namespace
}  // namespace spillway
