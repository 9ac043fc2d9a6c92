// Trainings whose large linear layer is updated in parts.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nets/builder.h"
#include "tests/src/network_in_memory.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using test::BlockNumbers;
using test::NetworkInMemory;

constexpr std::size_t kSamples = 6;
constexpr std::uint64_t kLastStep = 4;
constexpr um::Bytes kLargestUpdate{40'000};

// fc6 has 576 inputs and 48 outputs: 110 kB.
nets::Network network() {
  nets::Builder net{"large linear layer", {3, 8, 8}};
  nets::NodeId x =
      net.convolution("conv", net.input(), {.channels = 16, .kernel = nets::square(3)});
  x = net.relu("relu", net.linear("fc6", net.relu("relu0", x), {.features = 48}));
  return net.build(net.linear("fc7", x, {.features = 5}));
}

class PartTraining : public testing::Test {
 protected:
  [[nodiscard]] static StepOptions options(const OptimizerOptions& optimizer,
                                           um::Bytes largest_update = kLargestUpdate) {
    return {.batch = kSamples,
            .convolution = ConvolutionAlgorithm::kDirect,
            .optimizer = optimizer,
            .largest_update = largest_update};
  }
  static std::vector<float> train(NetworkInMemory& net, std::uint64_t from, std::uint64_t to) {
    std::vector<float> losses;
    for (std::uint64_t step = from; step < to; ++step) {
      const Batch batch = test::drawn_batch(net.network(), kSamples, step);
      losses.push_back(
          net.session()
              .train({.seed = 1, .step = step, .learning_rate = 0.01F, .batch = &batch})
              .loss);
    }
    return losses;
  }
  static std::vector<BlockNumbers> trained(NetworkInMemory net) {
    net.session().state().initialise(1);
    train(net, 0, kLastStep);
    return test::numbers_of(net.session().state(), net.training_step());
  }
  // Gradients are sums over the batch, in whatever order; numbers are up to 1 and their changes
  // less than a tenth of it.
  static void expect_near(const std::vector<BlockNumbers>& actual,
                          const std::vector<BlockNumbers>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t b = 0; b < actual.size(); ++b) {
      EXPECT_EQ(actual[b].name, expected[b].name);
      ASSERT_EQ(actual[b].values.size(), expected[b].values.size());
      for (std::size_t i = 0; i < actual[b].values.size(); ++i) {
        ASSERT_NEAR(actual[b].values[i], expected[b].values[i], 2e-6) << actual[b].name << i;
      }
    }
  }
  static void expect_same(const std::vector<BlockNumbers>& actual,
                          const std::vector<BlockNumbers>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t b = 0; b < actual.size(); ++b) {
      EXPECT_EQ(actual[b].values, expected[b].values) << actual[b].name;
    }
  }
};

TEST_F(PartTraining, LearnsWhatTheWholeLearns) {
  const SgdOptions sgd{.momentum = 0.5F, .weight_decay = 0.01F};
  const NetworkInMemory net{network(), options(sgd), MemoryMode::kResident};
  ASSERT_EQ(net.training_step().state[3].name, "fc6.momentum");
  ASSERT_GE(net.training_step().state[3].ids.size(), 3);
  expect_near(trained({network(), options(sgd), MemoryMode::kResident}),
              trained({network(), options(sgd, um::Bytes{1U << 30U}), MemoryMode::kResident}));
}

TEST_F(PartTraining, HasTheSameBitsInAnyMemory) {
  const auto resident =
      trained({network(), options(AdamOptions{.weight_decay = 0.01F}), MemoryMode::kResident});
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    expect_same(trained({network(), options(AdamOptions{.weight_decay = 0.01F}), mode}), resident);
  }
}

TEST_F(PartTraining, AddsUpTheGradientsOfMicroBatches) {
  const SgdOptions sgd{.momentum = 0.5F, .weight_decay = 0.01F};
  expect_near(trained({network(), options(sgd), MemoryMode::kResident, 2}),
              trained({network(), options(sgd), MemoryMode::kResident}));
  expect_same(trained({network(), options(sgd), MemoryMode::kManaged, 2}),
              trained({network(), options(sgd), MemoryMode::kResident, 2}));
}

TEST_F(PartTraining, GoesOnFromWhatItSavedWithTheSameBits) {
  const test::TemporaryFolder folder;
  const AdamOptions adam{.weight_decay = 0.01F};
  NetworkInMemory net{network(), options(adam), MemoryMode::kResident};
  net.session().state().initialise(1);
  train(net, 0, 2);
  net.session().state().save(folder.file("state"));
  const std::vector<float> losses = train(net, 2, kLastStep);

  NetworkInMemory again{network(), options(adam), MemoryMode::kResident};
  again.session().state().load(folder.file("state"));
  EXPECT_EQ(train(again, 2, kLastStep), losses);
  EXPECT_EQ(again.session().state().sha256(), net.session().state().sha256());
  expect_same(test::numbers_of(again.session().state(), again.training_step()),
              test::numbers_of(net.session().state(), net.training_step()));

  NetworkInMemory whole{network(), options(adam, um::Bytes{1U << 30U}), MemoryMode::kResident};
  whole.session().state().load(folder.file("state"));
  NetworkInMemory parts{network(), options(adam), MemoryMode::kResident};
  parts.session().state().load(folder.file("state"));
  expect_same(test::numbers_of(parts.session().state(), parts.training_step()),
              test::numbers_of(whole.session().state(), whole.training_step()));
}

}  // namespace
}  // namespace spillway
