#include "src/ops/far_kernel.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "src/ops/backend.h"
#include "tests/src/every_optimizer.h"

namespace spillway {
namespace {

constexpr std::size_t kCount = 40;
constexpr std::size_t kDecayed = 25;
constexpr StepContext kStep{.learning_rate = 0.1F};

std::vector<float> weights() {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < kCount; ++i) numbers.push_back(1 + 0.01F * static_cast<float>(i));
  return numbers;
}

// Returns the weights that an update with weight decay makes of a gradient of zeros, piece by
// piece.
std::vector<float> updated(const OptimizerOptions& options, const std::vector<FloatRange>& pieces) {
  const auto kernel = make_far_kernel({.parameters = {}, .options = options},
                                      {.begin = 0, .end = kCount}, kDecayed);
  std::vector<float> w = weights();
  std::vector<std::vector<float>> state(states_of(options).size(), std::vector<float>(kCount));
  const std::vector<float> zeros(kCount);
  for (const FloatRange& piece : pieces) {
    std::vector<float*> numbers{&w[piece.begin]};
    for (std::vector<float>& each : state) numbers.push_back(&each[piece.begin]);
    kernel->run(kStep, piece, numbers, &zeros[piece.begin]);
  }
  return w;
}

TEST(FarKernel, DecaysTheSameHoweverItsRangeIsCut) {
  const std::vector<float> before = weights();
  for (const OptimizerOptions& options : test::every_optimizer()) {
    SCOPED_TRACE(test::printed(options));
    const std::vector<float> whole = updated(options, {{.begin = 0, .end = kCount}});
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(whole[i] < before[i], i < kDecayed) << i;
    }
    EXPECT_EQ(
        updated(options,
                {{.begin = 0, .end = 10}, {.begin = 10, .end = 30}, {.begin = 30, .end = kCount}}),
        whole);
  }
}

}  // namespace
}  // namespace spillway
