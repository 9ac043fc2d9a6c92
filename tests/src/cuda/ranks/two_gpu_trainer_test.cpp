// A whole training of two ranks, on two GPUs without a driver.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/train/trainer.h"
#include "tests/src/cuda/ranks/nccl_ranks.h"
#include "tests/src/cuda/ranks/two_gpus.h"
#include "tests/src/gpu_training.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using namespace spillway::testing;
using namespace spillway::test;

TrainerOptions trainer_options(Communicator& process) {
  return {.network = small_network(),
          .step = {.batch = 8, .convolution = ConvolutionAlgorithm::kDirect},
          // The driver does not see kernels launched by a Trainer and cannot repeat them.
          .memory = {.mode = MemoryMode::kResident, .space = {.gpu = {.graph = false}}},
          .training = {.steps = 3, .evaluate_every = 0},
          .ranks = {.communicator = process,
                    .shards = 4,
                    .buckets = {.first = um::Bytes{64}, .others = um::Bytes{512}}}};
}

using Change = std::function<void(TrainerOptions&)>;

std::string trained_alone(const Change& change) {
  ThreadRanks one{1};
  const auto alone = one.end(0);
  TrainerOptions options = trainer_options(*alone);
  change(options);
  return Trainer{small_context(), options}.run().weights_sha256;
}

// Expects the results of one rank from two ranks.
void expect_same_on_two_gpus(const Change& change) {
  const std::string expected = trained_alone(change);
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
    change(options);
    options.ranks.join_devices = [&](ExecutionContext&) { return join_gpus(*gpus[rank], process); };
    Trainer trainer{std::move(opened[rank].context), std::move(options)};
    EXPECT_EQ(trainer.options().ranks.between_near_memory().library(), "nccl");
    weights[rank] = trainer.run().weights_sha256;
  });
  EXPECT_EQ(errors, no_errors(group));
  EXPECT_EQ(weights[0], expected);
  EXPECT_EQ(weights[1], expected);
}

// Covers everything that a Trainer does: only rank zero draws weights, and the connection of the
// GPUs is measured.
TEST(TwoGpuTrainer, BeginsWithTheFirstRanksWeights) {
  expect_same_on_two_gpus([](TrainerOptions&) {});
}

// Each GPU has half of the moments. The checkpoint has all of them, so that one GPU can continue.
TEST(TwoGpuTrainer, DividesTheOptimizer) {
  const TemporaryFolder folder;
  const auto divided = [&](TrainerOptions& options) {
    options.network = wide_network();
    options.step.optimizer = AdamOptions{.decoupled = true};
    options.ranks.divides_optimizer = true;
  };
  expect_same_on_two_gpus([&](TrainerOptions& options) {
    divided(options);
    options.checkpoint.folder =
        options.ranks.communicator.get().size() == 2 ? folder.file("two") : "";
  });
  const auto longer = [&](TrainerOptions& options) {
    divided(options);
    options.training.steps = 5;
  };
  EXPECT_EQ(trained_alone([&](TrainerOptions& options) {
              longer(options);
              options.checkpoint = {.folder = folder.file("two"), .resume = true};
            }),
            trained_alone(longer));
}

}  // namespace
}  // namespace spillway
