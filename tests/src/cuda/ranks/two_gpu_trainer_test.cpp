// A whole training of two ranks, on two GPUs without a driver.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/train/trainer.h"
#include "tests/src/cuda/ranks/nccl_ranks.h"
#include "tests/src/cuda/ranks/two_gpus.h"
#include "tests/src/gpu_training.h"
#include "tests/src/small_training.h"

namespace spillway {
namespace {

using namespace spillway::testing;
using namespace spillway::test;

TrainerOptions trainer_options(Communicator& process) {
  return {.network = small_network(),
          .step = {.batch = 8, .convolution = ConvolutionAlgorithm::kDirect},
          // The driver knows nothing of kernels that a Trainer makes, and cannot repeat them.
          .memory = {.mode = MemoryMode::kResident, .space = {.gpu = {.graph = false}}},
          .training = {.steps = 3, .evaluate_every = 0},
          .ranks = {.communicator = &process,
                    .shards = 4,
                    .buckets = {.first = um::Bytes{64}, .others = um::Bytes{512}}}};
}

// With all that a Trainer does: only the first rank draws weights, which go from GPU to GPU, and
// what is between the GPUs is measured.
TEST(TwoGpuTrainer, BeginsWithTheFirstRanksWeights) {
  ThreadRanks one{1};
  const auto alone = one.end(0);
  const std::string expected =
      Trainer{small_context(), trainer_options(*alone)}.run().weights_sha256;
  std::array<WatchedGpu*, kRanks> gpus{};
  std::vector<Opened> opened;
  for (WatchedGpu*& gpu : gpus) {
    auto driver = std::make_unique<WatchedGpu>();
    gpu = driver.get();
    opened.push_back(recorded_gpu(std::move(driver)));
  }
  const Exchanges exchanges{gpus};
  ThreadRanks group{kRanks};
  std::array<std::string, kRanks> weights;
  const auto errors = on_ranks(group, [&](Communicator& process) {
    const std::size_t rank = process.rank();
    TrainerOptions options = trainer_options(process);
    options.ranks.join_devices = [&](ExecutionContext&) { return join_gpus(*gpus[rank], process); };
    Trainer trainer{std::move(opened[rank].context), std::move(options)};
    EXPECT_EQ(trainer.options().ranks.between_near_memory().library(), "nccl");
    weights[rank] = trainer.run().weights_sha256;
  });
  EXPECT_EQ(errors, no_errors(group));
  EXPECT_EQ(weights[0], expected);
  EXPECT_EQ(weights[1], expected);
}

}  // namespace
}  // namespace spillway
