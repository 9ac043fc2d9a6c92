// Trainings whose batches are cut into micro-batches, beside the same with whole batches.
// Adam on batches that are cut into micro-batches: it counts batches, and ends where it ends on
// whole ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "prefetch/verify/verify.h"
#include "tests/src/network_in_memory.h"

namespace spillway {
namespace {

using test::BlockNumbers;
using test::NetworkInMemory;

constexpr std::size_t kBatch = 7;
constexpr std::size_t kMicroBatchClasses = 5;
constexpr nets::Shape kImage{.channels = 3, .height = 16, .width = 16};
constexpr float kRate = 0.05F;
constexpr std::uint64_t kSteps = 3;

// Every operation in it treats samples one by one, dropout among them.
nets::Network per_sample_network() {
  nets::Builder net{"per sample", kImage};
  nets::NodeId x =
      net.convolution("conv1", net.input(),
                      {.channels = 16, .kernel = nets::square(3), .padding = nets::square(1)});
  x = net.pool("pool", net.relu("relu1", x), {});
  x = net.dropout("drop", net.convolution("conv2", x, {.channels = 8}), {.probability = 0.5F});
  x = net.relu("relu2", net.linear("fc1", x, {.features = 32}));
  return net.build(net.linear("fc2", x, {.features = kMicroBatchClasses}));
}

// Its tensors are much larger than its parameters.
nets::Network narrow_network() {
  nets::Builder net{"narrow", kImage};
  nets::NodeId x = net.input();
  for (const char* name : {"1", "2", "3"}) {
    x = net.convolution(std::string{"conv"} + name, x,
                        {.channels = 16, .kernel = nets::square(3), .padding = nets::square(1)});
    x = net.relu(std::string{"relu"} + name, x);
  }
  return net.build(
      net.linear("fc", net.global_average_pool("mean", x), {.features = kMicroBatchClasses}));
}

// Begins with a batch norm, whose running statistics are those of the images.
nets::Network normalized_network() {
  nets::Builder net{"normalized", kImage};
  const nets::NodeId x = net.batch_norm("norm", net.input());
  return net.build(net.linear("fc", x, {.features = kMicroBatchClasses}));
}

Batch batch_of(std::uint64_t step) {
  std::mt19937_64 engine{step + 1};
  std::uniform_real_distribution<float> pixel{-1.F, 1.F};
  Batch batch;
  for (std::size_t i = 0; i < kBatch * kImage.elements(); ++i) {
    batch.images.push_back(pixel(engine));
  }
  for (std::size_t n = 0; n < kBatch; ++n) {
    batch.labels.push_back(static_cast<std::int32_t>((2 * n + step) % kMicroBatchClasses));
  }
  return batch;
}

struct MicroBatchTrained {
  std::vector<float> losses;
  std::vector<float> corrects;
  std::vector<BlockNumbers> numbers;
  std::string weights;
};

class MicroBatchTraining : public testing::Test {
 protected:
  [[nodiscard]] static NetworkInMemory in_memory(const nets::Network& network,
                                                 std::size_t micro_batch,
                                                 MemoryMode memory = MemoryMode::kResident) {
    return {network,
            {.batch = kBatch, .convolution = ConvolutionAlgorithm::kDirect},
            memory,
            micro_batch};
  }
  using Draw = std::function<Batch(std::uint64_t step)>;

  // Three steps.
  [[nodiscard]] static MicroBatchTrained train(NetworkInMemory net, const Draw& draw = batch_of) {
    net.session().state().initialise(1);
    MicroBatchTrained trained;
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const Batch batch = draw(step);
      const StepReport report =
          net.session().train({.seed = 1, .step = step, .learning_rate = kRate, .batch = &batch});
      trained.losses.push_back(report.loss);
      trained.corrects.push_back(report.correct);
      EXPECT_LE(report.near_peak, net.plans().budget);
    }
    trained.numbers = test::numbers_of(net.session().state(), net.training_step());
    trained.weights = net.session().state().sha256();
    return trained;
  }
};

// The two differ in the order in which numbers are added. A gradient of a parameter is a sum of at
// most n = 7 * 256 products (of conv1, one for each pixel of a batch). In either order an addition
// rounds by at most u / 2 = 2^-25 of its sum, up as often as down: sqrt(n) of them, and 4 standard
// deviations. Sums on the way are taken to be no larger than the largest number of the momentum,
// itself a sum of three gradients.
constexpr double kUnit = 1.0 / (1 << 24);
const double kMicroBatchRounding = 4 * std::sqrt(7.0 * 256.0) * kUnit / 2;

double largest_of(const BlockNumbers& block) {
  double largest = 0;
  for (const float value : block.values) {
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  return largest;
}

double largest_block_difference(const BlockNumbers& a, const BlockNumbers& b) {
  BlockNumbers difference = a;
  for (std::size_t i = 0; i < a.values.size(); ++i) difference.values[i] -= b.values[i];
  return largest_of(difference);
}

// Weights are rounded themselves, and move by the rate times the momentum three times.
void expect_same_up_to_rounding(const MicroBatchTrained& actual,
                                const MicroBatchTrained& expected) {
  EXPECT_EQ(actual.corrects, expected.corrects);
  for (std::size_t step = 0; step < kSteps; ++step) {
    // Some 2, of which a few additions and the weights' rounding show in the last digits.
    EXPECT_NEAR(actual.losses[step], expected.losses[step], 32 * kUnit * 2);
  }
  ASSERT_EQ(actual.numbers.size(), expected.numbers.size());
  for (std::size_t b = 0; b + 1 < actual.numbers.size(); b += 2) {
    const BlockNumbers& weights = expected.numbers[b];
    const BlockNumbers& momentum = expected.numbers[b + 1];
    ASSERT_EQ(momentum.name, weights.name + ".momentum");
    const double rounding = kMicroBatchRounding * largest_of(momentum);
    EXPECT_LE(largest_block_difference(actual.numbers[b + 1], momentum), rounding) << momentum.name;
    EXPECT_LE(largest_block_difference(actual.numbers[b], weights),
              3 * (static_cast<double>(kRate) * rounding + kUnit * largest_of(weights)))
        << weights.name;
  }
}

TEST_F(MicroBatchTraining, EndsAsTheWholeBatchUpToRoundingWhereNoLayerMixesSamples) {
  const MicroBatchTrained whole = train(in_memory(per_sample_network(), kBatch));
  for (const std::size_t size : {1, 2, 3, 4}) {
    SCOPED_TRACE(size);
    expect_same_up_to_rounding(train(in_memory(per_sample_network(), size)), whole);
  }
}

TEST_F(MicroBatchTraining, OfAWholeBatchIsTheOrdinaryOne) {
  const NetworkInMemory net = in_memory(per_sample_network(), kBatch);
  EXPECT_EQ(net.workload().micro_batches().count(), 1U);
  EXPECT_EQ(net.training_step().results.size(), 1U);
}

// The mean is over the five samples that count, wherever the batch is cut; a micro-batch of one may
// have none.
TEST_F(MicroBatchTraining, IgnoresSamplesWithoutALabel) {
  const Draw draw = [](std::uint64_t step) {
    Batch batch = batch_of(step);
    for (const std::size_t n : {2, 6}) batch.labels[n] = -1;
    return batch;
  };
  const MicroBatchTrained whole = train(in_memory(per_sample_network(), kBatch), draw);
  for (const std::size_t size : {1, 3}) {
    SCOPED_TRACE(size);
    expect_same_up_to_rounding(train(in_memory(per_sample_network(), size), draw), whole);
  }
}

// The table of tokens gets a gradient from its first layer and one from the loss.
TEST_F(MicroBatchTraining, AddsAllGradientsOfATableThatTwoLayersShare) {
  const nets::Network gpt = nets::gpt("tiny", {.layers = 1, .heads = 2, .width = 8, .context = 6},
                                      nets::tokens(6), kMicroBatchClasses);
  const Draw draw = [&](std::uint64_t step) { return test::drawn_batch(gpt, kBatch, step); };
  expect_same_up_to_rounding(train(in_memory(gpt, 3), draw), train(in_memory(gpt, kBatch), draw));
}

TEST_F(MicroBatchTraining, GivesTheSameBitsWhereverItsTensorsAre) {
  for (const nets::Network& network : {per_sample_network(), normalized_network()}) {
    for (const std::size_t size : {1, 3}) {
      const MicroBatchTrained resident = train(in_memory(network, size));
      for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
        const MicroBatchTrained other = train(in_memory(network, size, memory));
        EXPECT_EQ(other.losses, resident.losses) << network.name << ' ' << to_string(memory);
        EXPECT_EQ(other.weights, resident.weights) << network.name << ' ' << to_string(memory);
      }
    }
  }
}

TEST_F(MicroBatchTraining, FitsWhereTheWholeBatchDoesNot) {
  const NetworkInMemory whole = in_memory(narrow_network(), kBatch, MemoryMode::kManaged);
  NetworkInMemory parts = in_memory(narrow_network(), 2, MemoryMode::kManaged);
  const auto verdict = prefetch::verify(parts.training_step().graph, parts.training_plan());
  EXPECT_LE(std::get<prefetch::Verified>(verdict).peak, parts.plans().budget);
  parts.session().state().initialise(1);
  const Batch batch = batch_of(0);
  const StepReport report = parts.session().train({.learning_rate = kRate, .batch = &batch});
  EXPECT_LE(report.near_peak, parts.plans().budget);
  EXPECT_LT(report.near_peak, whole.workload().need().smallest);
}

// running = 0.9 running + 0.1 of a micro-batch, the mean of three: of 3, 3 and 1 samples. A mean of
// 768 numbers up to 1 rounds off by far less than 1e-6.
TEST_F(MicroBatchTraining, MovesRunningStatisticsOnceABatch) {
  NetworkInMemory net = in_memory(normalized_network(), 3);
  net.session().state().initialise(1);
  const Batch batch = batch_of(0);
  static_cast<void>(net.session().train({.learning_rate = kRate, .batch = &batch}));

  const std::vector<BlockNumbers> numbers =
      test::numbers_of(net.session().state(), net.training_step());
  const auto running = std::ranges::find(numbers, "norm.running", &BlockNumbers::name);
  const std::size_t pixels = kImage.height * kImage.width;
  for (std::size_t c = 0; c < kImage.channels; ++c) {
    double mean = 0;
    for (const auto& [begin, end] : {std::pair{0U, 3U}, {3U, 6U}, {6U, 7U}}) {
      double sum = 0;
      for (std::size_t n = begin; n < end; ++n) {
        for (std::size_t p = 0; p < pixels; ++p) {
          sum += static_cast<double>(batch.images[(n * kImage.channels + c) * pixels + p]);
        }
      }
      mean += 0.1 / 3 * sum / static_cast<double>((end - begin) * pixels);
    }
    EXPECT_NEAR(static_cast<double>(running->values[c]), mean, 1e-6);
  }
}

TEST_F(MicroBatchTraining, NormalizesEachMicroBatchByItself) {
  const MicroBatchTrained whole = train(in_memory(normalized_network(), kBatch));
  const MicroBatchTrained parts = train(in_memory(normalized_network(), 3));
  EXPECT_GT(std::abs(parts.losses[0] - whole.losses[0]), 1e-4F);
}

TEST_F(MicroBatchTraining, EvaluatesAsManySamplesAtATime) {
  EXPECT_EQ(in_memory(per_sample_network(), 3).session().evaluation_batch(), 3U);
  EXPECT_EQ(in_memory(per_sample_network(), kBatch).session().evaluation_batch(), kBatch);
}

constexpr float kAdamRate = 0.001F;

// Every operation in it treats samples one by one.
nets::Network plain_network() {
  nets::Builder net{"per sample", kImage};
  nets::NodeId x =
      net.convolution("conv", net.input(), {.channels = 16, .kernel = nets::square(3)});
  x = net.pool("pool", net.relu("relu1", x), {});
  x = net.relu("relu2", net.linear("fc1", x, {.features = 32}));
  return net.build(net.linear("fc2", x, {.features = kMicroBatchClasses}));
}

struct AdamTrained {
  std::vector<float> losses;
  std::vector<BlockNumbers> first;
  std::vector<BlockNumbers> last;
};

class MicroBatchAdam : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static NetworkInMemory in_memory(std::size_t micro_batch,
                                                 MemoryMode memory = MemoryMode::kResident) {
    return {plain_network(),
            {.batch = kBatch,
             .convolution = ConvolutionAlgorithm::kDirect,
             .optimizer = AdamOptions{.decoupled = GetParam()}},
            memory,
            micro_batch};
  }

  [[nodiscard]] static AdamTrained train(NetworkInMemory net, std::uint64_t steps) {
    net.session().state().initialise(1);
    AdamTrained trained;
    trained.first = test::numbers_of(net.session().state(), net.training_step());
    // Always the same, so that gradients change but little from step to step.
    const Batch images = test::drawn_batch(net.network(), kBatch, 0);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const StepReport report = net.session().train(
          {.seed = 1, .step = step, .learning_rate = kAdamRate, .batch = &images});
      trained.losses.push_back(report.loss);
    }
    trained.last = test::numbers_of(net.session().state(), net.training_step());
    return trained;
  }
};

// The t-th update is the rate times (m / (1 - 0.9^t)) / sqrt(v / (1 - 0.999^t)). With t = 1, m =
// 0.1 g and v = 0.001 g^2, that is the rate, whatever g; had each of three micro-batches counted, t
// = 3, 0.64 times the rate. A weight of 0.1 is rounded by 4e-9, and epsilon, 1e-8, takes 1e-4 of a
// gradient of 1e-4 and less of others. Weights do not decay.
TEST_P(MicroBatchAdam, CountsBatches) {
  for (const std::size_t size : {3U, 1U}) {
    const AdamTrained trained = train(in_memory(size), 1);
    std::size_t moved = 0;
    for (std::size_t b = 0; b < trained.last.size(); b += 3) {
      const BlockNumbers& moment = trained.last[b + 1];
      ASSERT_EQ(moment.name, trained.last[b].name + ".exp_avg");
      for (std::size_t i = 0; i < moment.values.size(); ++i) {
        if (std::abs(moment.values[i]) < 1e-5F) continue;
        ++moved;
        ASSERT_NEAR(std::abs(trained.last[b].values[i] - trained.first[b].values[i]) / kAdamRate, 1,
                    5e-4);
      }
    }
    EXPECT_GT(moved, 1000U);
  }
}

// The rounding of a gradient near zero decides in which direction Adam moves its weight. Such a
// weight hardly changes the loss.
TEST_P(MicroBatchAdam, HasTheLossesOfTheWholeBatchUpToRounding) {
  const AdamTrained whole = train(in_memory(kBatch), 10);
  EXPECT_LT(whole.losses.back(), whole.losses.front() - 0.1F);
  for (const std::size_t size : {1U, 3U}) {
    const AdamTrained parts = train(in_memory(size), 10);
    for (std::size_t step = 0; step < 10; ++step) {
      EXPECT_NEAR(parts.losses[step], whole.losses[step], 1e-5) << step;
    }
  }
}

TEST_P(MicroBatchAdam, GivesTheSameBitsWhereverItsTensorsAre) {
  const AdamTrained resident = train(in_memory(3), 3);
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const AdamTrained other = train(in_memory(3, memory), 3);
    EXPECT_EQ(other.losses, resident.losses) << to_string(memory);
    EXPECT_TRUE(std::ranges::equal(other.last, resident.last, {}, &BlockNumbers::values,
                                   &BlockNumbers::values))
        << to_string(memory);
  }
}

INSTANTIATE_TEST_SUITE_P(Decoupled, MicroBatchAdam, testing::Bool());

}  // namespace
}  // namespace spillway
