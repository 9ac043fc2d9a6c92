// Adam on batches that are cut into sub-batches: it counts batches, and ends where it ends on whole
// ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "tests/src/drawn_batch.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/state_numbers.h"

namespace spillway {
namespace {

using test::BlockNumbers;
using test::NetworkInMemory;

constexpr std::size_t kBatch = 7;
constexpr std::size_t kClasses = 5;
constexpr nets::Shape kImage{.channels = 3, .height = 16, .width = 16};
constexpr float kRate = 0.001F;

// Every operation in it treats samples one by one.
nets::Network network() {
  nets::Builder net{"per sample", kImage};
  nets::NodeId x =
      net.convolution("conv", net.input(), {.channels = 16, .kernel = nets::square(3)});
  x = net.pool("pool", net.relu("relu1", x), {});
  x = net.relu("relu2", net.linear("fc1", x, {.features = 32}));
  return net.build(net.linear("fc2", x, {.features = kClasses}));
}

struct Trained {
  std::vector<float> losses;
  std::vector<BlockNumbers> first;
  std::vector<BlockNumbers> last;
};

class SubBatchAdam : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static NetworkInMemory in_memory(std::size_t sub_batch,
                                                 MemoryMode memory = MemoryMode::kResident) {
    return {network(),
            {.batch = kBatch,
             .convolution = ConvolutionAlgorithm::kDirect,
             .optimizer = AdamOptions{.decoupled = GetParam()}},
            memory,
            sub_batch};
  }

  [[nodiscard]] static Trained train(NetworkInMemory net, std::uint64_t steps) {
    net.session().state().initialise(1);
    Trained trained;
    trained.first = test::numbers_of(net.session().state(), net.training_step());
    // Always the same, so that gradients change but little from step to step.
    const Batch images = test::drawn_batch(net.network(), kBatch, 0);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const StepReport report =
          net.session().train({.seed = 1, .step = step, .learning_rate = kRate, .batch = &images});
      trained.losses.push_back(report.loss);
    }
    trained.last = test::numbers_of(net.session().state(), net.training_step());
    return trained;
  }
};

// The t-th update is the rate times (m / (1 - 0.9^t)) / sqrt(v / (1 - 0.999^t)). With t = 1, m =
// 0.1 g and v = 0.001 g^2, that is the rate, whatever g; had each of three sub-batches counted, t =
// 3, 0.64 times the rate. A weight of 0.1 is rounded by 4e-9, and epsilon, 1e-8, takes 1e-4 of a
// gradient of 1e-4 and less of others. Weights do not decay.
TEST_P(SubBatchAdam, CountsBatches) {
  for (const std::size_t size : {3U, 1U}) {
    const Trained trained = train(in_memory(size), 1);
    std::size_t moved = 0;
    for (std::size_t b = 0; b < trained.last.size(); b += 3) {
      const BlockNumbers& moment = trained.last[b + 1];
      ASSERT_EQ(moment.name, trained.last[b].name + ".exp_avg");
      for (std::size_t i = 0; i < moment.values.size(); ++i) {
        if (std::abs(moment.values[i]) < 1e-5F) continue;
        ++moved;
        ASSERT_NEAR(std::abs(trained.last[b].values[i] - trained.first[b].values[i]) / kRate, 1,
                    5e-4);
      }
    }
    EXPECT_GT(moved, 1000U);
  }
}

// Where a gradient is all but zero, its rounding decides where Adam moves a weight to; such a
// weight hardly changes the loss.
TEST_P(SubBatchAdam, HasTheLossesOfTheWholeBatchUpToRounding) {
  const Trained whole = train(in_memory(kBatch), 10);
  EXPECT_LT(whole.losses.back(), whole.losses.front() - 0.1F);
  for (const std::size_t size : {1U, 3U}) {
    const Trained parts = train(in_memory(size), 10);
    for (std::size_t step = 0; step < 10; ++step) {
      EXPECT_NEAR(parts.losses[step], whole.losses[step], 1e-5) << step;
    }
  }
}

TEST_P(SubBatchAdam, GivesTheSameBitsWhereverItsTensorsAre) {
  const Trained resident = train(in_memory(3), 3);
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Trained other = train(in_memory(3, memory), 3);
    EXPECT_EQ(other.losses, resident.losses) << to_string(memory);
    EXPECT_TRUE(std::ranges::equal(other.last, resident.last, {}, &BlockNumbers::values,
                                   &BlockNumbers::values))
        << to_string(memory);
  }
}

INSTANTIATE_TEST_SUITE_P(Decoupled, SubBatchAdam, testing::Bool());

}  // namespace
}  // namespace spillway
