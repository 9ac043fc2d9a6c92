// Ranks on real GPUs, as threads of one process: one rank, or two if there are two GPUs.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/cuda/cuda_backend.h"
#include "src/cuda/ranks/device_communicator.h"
#include "src/host/host_backend.h"
#include "src/ranks/tree_reduction.h"
#include "src/train/trainer.h"
#include "tests/gpu.h"
#include "tests/src/ranks/micro_batch_numbers.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/check.h"
#include "um/host/host_device.h"

namespace spillway::cuda {
namespace {

using namespace spillway::testing;

class GpuRanks : public GpuTest {
 protected:
  // Skips the test if there are fewer GPUs.
  static void require_gpus(int wanted) {
    int count = 0;
    um::check(cudaGetDeviceCount(&count));
    if (count < wanted) GTEST_SKIP() << "needs " << wanted << " GPUs, and there are " << count;
  }
};

// Numbers in device memory.
class DeviceNumbers {
 public:
  DeviceNumbers(um::Memory& memory, const std::vector<float>& numbers)
      : block_{memory, um::Bytes{numbers.size() * sizeof(float)}} {
    um::check(cudaMemcpy(block_.data(), numbers.data(), block_.size().count(), cudaMemcpyDefault));
    um::check(cudaDeviceSynchronize());
  }
  [[nodiscard]] std::span<float> span() const {
    return {reinterpret_cast<float*>(block_.data()), block_.size().count() / sizeof(float)};
  }
  [[nodiscard]] std::vector<float> numbers() const {
    std::vector<float> result(span().size());
    um::check(cudaMemcpy(result.data(), block_.data(), block_.size().count(), cudaMemcpyDefault));
    return result;
  }

 private:
  um::Block block_;
};

// Each of two ranks has a slice of more than one piece.
void reduce_on_gpu(Communicator& process, std::size_t micro_batches) {
  constexpr std::size_t kNumbers = 1'100'003;
  const auto device = um::open_cuda_device(static_cast<int>(process.rank()));
  const auto ranks = join_devices(device->api(), process, {});
  const TreeReduction reduction{*ranks, micro_batches};
  std::vector<DeviceNumbers> own;
  for (const auto& sum : range_sums(reduction.tree(), reduction.own_micro_batches(), kNumbers)) {
    own.emplace_back(device->memory(), sum);
  }
  std::vector<std::span<const float>> nodes;
  for (const DeviceNumbers& node : own) nodes.emplace_back(node.span());
  const um::Block scratch{device->memory(), reduction.scratch_size(kNumbers)};
  const DeviceNumbers total{device->memory(), std::vector<float>(kNumbers)};
  const std::vector<float> expected = tree_sum(micro_batches, kNumbers);
  reduction.all_reduce(nodes, total.span(), scratch.bytes());
  ranks->finish();
  if (!same_bits(total.numbers(), expected)) throw um::Error{"other bits than by the tree"};
  reduction.fast_all_reduce(nodes, total.span());
  ranks->finish();
  const std::vector<float> fast = total.numbers();
  for (std::size_t i = 0; i < kNumbers; ++i) {
    if (std::abs(fast[i] - expected[i]) > 1e-5F) throw um::Error{"another fast sum"};
  }
}

TEST_F(GpuRanks, OfOneReduceByTheTree) {
  ThreadRanks group{1};
  EXPECT_EQ(on_ranks(group, [](Communicator& process) { reduce_on_gpu(process, 5); }),
            no_errors(group));
}

TEST_F(GpuRanks, OfTwoReduceByTheTree) {
  require_gpus(2);
  if (IsSkipped()) return;
  for (const std::size_t micro_batches : {2U, 5U, 8U}) {
    ThreadRanks group{2};
    EXPECT_EQ(
        on_ranks(group, [&](Communicator& process) { reduce_on_gpu(process, micro_batches); }),
        no_errors(group));
  }
}

struct Trained {
  std::vector<float> losses;
  std::string weights;
};

TrainerOptions training_options(Communicator& process) {
  return {.network = test::small_network(),
          .step = {.batch = 16, .convolution = ConvolutionAlgorithm::kDirect},
          .memory = {.budget = "min+50%"},
          .planning = {.micro_batches = {.count = 4}},
          .training = {.steps = 4, .evaluate_every = 0},
          .ranks = {.communicator = process,
                    .buckets = {.first = um::Bytes{64}, .others = um::Bytes{512}}}};
}

Trained run_training(ExecutionContext context, TrainerOptions options) {
  Trained trained;
  Trainer trainer{std::move(context),
                  std::move(options),
                  {.on_step = [&](auto, auto, const StepReport& report) {
                    trained.losses.push_back(report.loss);
                  }}};
  trained.weights = trainer.run().weights_sha256;
  return trained;
}

Trained train_on_gpu(Communicator& process) {
  TrainerOptions options = training_options(process);
  options.ranks.join_devices = [&process](ExecutionContext& context) {
    return join_devices(dynamic_cast<um::CudaDevice&>(*context.device).api(), process, {});
  };
  return run_training(open_context({.ordinal = process.rank(), .deterministic = true}),
                      std::move(options));
}

void expect_near(const std::vector<float>& losses, const std::vector<float>& expected) {
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-4);
}

std::vector<float> losses_on_host() {
  ThreadRanks group{1};
  const auto process = group.end(0);
  return run_training(test::small_context(), training_options(*process)).losses;
}

TEST_F(GpuRanks, OfOneTrainMicroBatchesAsTheHost) {
  ThreadRanks group{1};
  const auto process = group.end(0);
  const Trained trained = train_on_gpu(*process);
  expect_near(trained.losses, losses_on_host());
}

TEST_F(GpuRanks, OfTwoTrainAsOne) {
  require_gpus(2);
  if (IsSkipped()) return;
  ThreadRanks group{2};
  std::vector<Trained> trained(2);
  const auto errors = on_ranks(
      group, [&](Communicator& process) { trained[process.rank()] = train_on_gpu(process); });
  EXPECT_EQ(errors, no_errors(group));
  EXPECT_EQ(trained[0].weights, trained[1].weights);
  EXPECT_EQ(trained[0].losses, trained[1].losses);
  ThreadRanks one{1};
  const auto process = one.end(0);
  const Trained alone = train_on_gpu(*process);
  EXPECT_EQ(trained[0].losses, alone.losses);
  EXPECT_EQ(trained[0].weights, alone.weights);
}

}  // namespace
}  // namespace spillway::cuda
