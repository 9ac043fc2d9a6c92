#include "tests/golden/golden_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>

#include "nets/text/network_file.h"

namespace spillway::test {
namespace {

// Returns the norm of the difference, relative to the norm of `wanted`.
double distance(std::span<const float> values, std::span<const double> wanted) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - wanted[i], 2);
    norm += std::pow(wanted[i], 2);
  }
  return std::sqrt(difference / norm);
}

// Expects blocks of `state` with names that end with `suffix` to be close to `wanted`.
void expect_near(const std::vector<BlockNumbers>& state, const std::string& suffix,
                 GoldenFile::Blocks wanted, double tolerance) {
  for (const BlockNumbers& block : state) {
    if (!block.name.ends_with(suffix)) continue;
    const auto golden = wanted.extract(block.name);
    ASSERT_FALSE(golden.empty()) << block.name;
    ASSERT_EQ(block.values.size(), golden.mapped().size()) << block.name;
    EXPECT_LT(distance(block.values, golden.mapped()), tolerance) << block.name;
  }
  EXPECT_TRUE(wanted.empty()) << wanted.begin()->first << " and maybe others are missing";
}

nets::Network network_of(const GoldenFile& golden) {
  const auto entry =
      nets::open_network(std::string{SPILLWAY_GOLDEN_FILES} + "/" + golden.name + ".net");
  return entry.build(entry.image, entry.classes);
}

}  // namespace

GoldenTraining::GoldenTraining(const GoldenFile& golden, const OptimizerOptions& optimizer,
                               const MakeNetwork& make)
    : golden_{golden},
      net_{make(network_of(golden), {.batch = golden.batch, .optimizer = optimizer})} {
  set_numbers(net_->session().state(), net_->training_step(),
              golden.initial_state(net_->training_step()));
}

StepReport GoldenTraining::train(std::uint64_t step, float learning_rate) {
  const Batch batch = golden_.make_batch(net_->network(), step);
  return net_->session().train({.step = step, .learning_rate = learning_rate, .batch = &batch});
}

StepReport GoldenTraining::evaluate(std::uint64_t step) {
  const Batch batch = golden_.make_batch(net_->network(), step);
  return net_->session().evaluate({.batch = &batch});
}

std::vector<BlockNumbers> GoldenTraining::state() {
  return numbers_of(net_->session().state(), net_->training_step());
}

// Without previous momentum and weight decay, a step's momentum is the gradient.
void expect_golden_gradients(const GoldenFile& golden, const MakeNetwork& make,
                             const GoldenTolerance& tolerance) {
  const double max = tolerance.one_step;
  GoldenTraining training{golden, SgdOptions{.momentum = golden.sgd.momentum, .weight_decay = 0},
                          make};
  const StepReport report = training.train(0);
  EXPECT_NEAR(static_cast<double>(report.loss), golden.losses[0], max * golden.losses[0]);
  GoldenFile::Blocks momenta;
  for (const auto& [name, numbers] : golden.gradients) momenta[name + ".momentum"] = numbers;
  expect_near(training.state(), ".momentum", momenta, max);
  expect_near(training.state(), ".running", golden.running_after_first, max);
}

void expect_golden_losses(const GoldenFile& golden, const MakeNetwork& make,
                          const GoldenTolerance& tolerance) {
  const double max = tolerance.losses * golden.losses[0];
  ASSERT_EQ(golden.losses.size(), 10U);
  GoldenTraining training{golden, golden.sgd, make};
  for (std::uint64_t step = 0; step < golden.losses.size(); ++step) {
    const auto loss = static_cast<double>(training.train(step).loss);
    EXPECT_NEAR(loss, golden.losses[step], max) << "step " << step;
  }
  expect_near(training.state(), ".running", golden.running_after_last, tolerance.statistics);
  const StepReport report = training.evaluate(golden.losses.size());
  const auto samples = static_cast<double>(golden.batch);
  EXPECT_NEAR(static_cast<double>(report.loss) / samples, golden.evaluation_loss, max);
  EXPECT_EQ(static_cast<double>(report.correct), golden.evaluation_correct);
}

void expect_golden_losses_with_others(const GoldenFile& golden, const MakeNetwork& make,
                                      const GoldenTolerance& tolerance) {
  for (const OtherOptimizer& other : golden.others) {
    ASSERT_EQ(other.losses.size(), 10U);
    GoldenTraining training{golden, other.options, make};
    for (std::uint64_t step = 0; step < other.losses.size(); ++step) {
      const auto loss = static_cast<double>(training.train(step, other.learning_rate).loss);
      EXPECT_NEAR(loss, other.losses[step], tolerance.losses * other.losses[0])
          << other.name << ", step " << step;
    }
  }
}

}  // namespace spillway::test
