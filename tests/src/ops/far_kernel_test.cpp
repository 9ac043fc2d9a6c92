#include "src/ops/far_kernel.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "src/ops/backend.h"

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

// Returns the weights that SGD with weight decay makes of a gradient of zeros, piece by piece.
std::vector<float> updated(const std::vector<FloatRange>& pieces) {
  const SgdUpdate update{.parameters = {}, .options = {.momentum = 0.9F, .weight_decay = 0.5F}};
  const auto kernel = make_far_kernel(update, {.begin = 0, .end = kCount}, kDecayed);
  std::vector<float> w = weights();
  std::vector<float> v(kCount);
  const std::vector<float> zeros(kCount);
  for (const FloatRange& piece : pieces) {
    const std::array<float* const, 2> numbers{&w[piece.begin], &v[piece.begin]};
    kernel->run(kStep, piece, numbers, &zeros[piece.begin]);
  }
  return w;
}

TEST(FarKernel, DecaysTheSameHoweverItsRangeIsCut) {
  const std::vector<float> whole = updated({{.begin = 0, .end = kCount}});
  const std::vector<float> before = weights();
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(whole[i] < before[i], i < kDecayed) << i;
  }
  EXPECT_EQ(
      updated({{.begin = 0, .end = 10}, {.begin = 10, .end = 30}, {.begin = 30, .end = kCount}}),
      whole);
}

}  // namespace
}  // namespace spillway
