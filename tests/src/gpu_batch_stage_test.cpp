#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/run/batch_stage.h"
#include "tests/sleeping_threads.h"
#include "tests/src/gpu_like_backend.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"

namespace spillway {
namespace {

constexpr TensorShape kShape{2, {1, 32, 32}};

// Batches on their way to a GPU, whose step does nothing but load them.
class GpuBatchStage : public ::testing::Test {
 protected:
  GpuBatchStage() {
    auto api = std::make_unique<um::RecordingApi>();
    gpu_ = api.get();
    auto device = std::make_unique<um::CudaDevice>(std::move(api), um::CudaOptions{});
    auto compute = device->make_cuda_stream("compute");
    compute_ = compute->native();
    context_.backend = std::make_unique<GpuLikeBackend>(device->batch_memory(), *gpu_, compute_);
    context_.device = std::move(device);
    context_.compute = std::move(compute);
    stage_.emplace(context_, context_.backend->staged_bytes(load_), context_.device->memory());
    step_.graph.add(prefetch::DataBlock{.name = "staged", .kind = prefetch::DataKind::kState});
    step_.staged = prefetch::DataId{0};
  }

  static Batch batch(std::uint64_t number, float value) {
    Batch batch;
    batch.number = number;
    batch.images.assign(kShape.elements(), value);
    batch.labels.assign(kShape.batch, 1);
    return batch;
  }
  [[nodiscard]] BatchSamples samples(const Batch* batch) const {
    return {.load = &load_, .batch = batch};
  }

  // A step; returns the first number of the images that it finds.
  float run(const Batch& now, const Batch* next = nullptr) {
    stage_->expect(samples(&now), samples(next));
    float found = 0;
    context_.compute->enqueue([&] {
      std::vector<std::byte*> address(1);
      stage_->place(step_, address);
      const um::Use use{.range = {address[0], context_.backend->staged_bytes(load_).count()},
                        .access = um::Access::kRead};
      const auto* const images = reinterpret_cast<const float*>(address[0]) + kShape.batch;
      gpu_->launch(compute_, "load", {&use, 1}, [&] { found = *images; });
      stage_->loaded();
    });
    context_.compute->synchronize();
    return found;
  }
  [[nodiscard]] std::ptrdiff_t uploads() {
    return std::ranges::count_if(
        gpu_->take_log(), [](const std::string& line) { return line.starts_with("upload: copy"); });
  }

  const LoadBatch load_{.x = kShape, .is_staged = true};
  um::RecordedGpu* gpu_ = nullptr;
  cudaStream_t compute_ = nullptr;
  Step step_;
  ExecutionContext context_;
  std::optional<BatchStage> stage_;
};

TEST_F(GpuBatchStage, BringsEachBatchOnce) {
  const std::vector<Batch> batches{batch(1, 1), batch(2, 2), batch(3, 3)};
  for (const std::uint32_t seed : {0U, 1U, 2U}) {
    const um::LateGpu late{*gpu_, seed};
    EXPECT_EQ(run(batches[0], &batches[1]), 1);
    EXPECT_EQ(run(batches[1], &batches[2]), 2);
    EXPECT_EQ(run(batches[2]), 3);
  }
  EXPECT_EQ(uploads(), 9);
}

TEST_F(GpuBatchStage, BringsTheNextBatchBeforeItIsAskedFor) {
  const Batch first = batch(1, 1);
  const Batch second = batch(2, 2);
  static_cast<void>(run(first, &second));
  stage_->settle();
  EXPECT_EQ(uploads(), 2);
}

TEST_F(GpuBatchStage, BringsAnewWhatAnotherStepCameBetween) {
  const Batch first = batch(1, 1);
  const Batch second = batch(2, 2);
  const Batch other = batch(3, 3);
  const um::LateGpu late{*gpu_, 1};
  EXPECT_EQ(run(first, &second), 1);
  EXPECT_EQ(run(other), 3);
  EXPECT_EQ(run(second), 2);
  EXPECT_EQ(uploads(), 4);
}

// Another batch may lie at the address by now.
TEST_F(GpuBatchStage, TrustsNoAddress) {
  Batch without_number = batch(0, 1);
  EXPECT_EQ(run(without_number, &without_number), 1);
  stage_->settle();
  without_number.images.assign(kShape.elements(), 5);
  EXPECT_EQ(run(without_number), 5);
}

// The thread that reads the second batch gets to it only when everybody waits for that.
TEST_F(GpuBatchStage, ReadsNoBatchWhenItHasSettled) {
  const Batch first = batch(1, 1);
  const Batch second = batch(2, 2);
  std::atomic<bool> settles = false;
  std::atomic<bool> has_settled = false;
  stage_->expect(samples(&first), samples(&second));
  static_cast<GpuLikeBackend&>(*context_.backend).on_stage = [&] {
    while (!settles || !test::all_others_sleep()) std::this_thread::yield();
    EXPECT_FALSE(has_settled);
  };
  context_.compute->enqueue([&] { stage_->loaded(); });
  context_.compute->synchronize();
  settles = true;
  stage_->settle();
  has_settled = true;
  stage_.reset();
}

TEST_F(GpuBatchStage, SaysThatABatchIsTooSmall) {
  Batch small = batch(1, 1);
  small.images.resize(1);
  EXPECT_THROW(static_cast<void>(run(small)), std::logic_error);
}

}  // namespace
}  // namespace spillway
