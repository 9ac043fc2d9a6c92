#include "src/cuda/kernels/sequences/attention_kernels.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

AttentionForward of_width(std::size_t width) {
  return {.geometry = {.x = {.batch = 1, .image = nets::sequence(9, 3 * width)},
                       .heads = {.heads = 1, .kv_heads = 1}}};
}

// Sums of up to 153 products of numbers in [-1, 1].
constexpr double kTolerance = 3e-5;

class WidestHead : public KernelRunner {};

TEST_F(WidestHead, FitsIntoSharedMemory) {
  const AttentionForward forward = of_width(kWidestHead);
  Block x = tensor(forward.geometry.x, random_values(forward.geometry.x.elements(), 1));
  Block y = tensor(forward.geometry.y());
  Block saved = saved_by(forward);
  run(forward, {&x, &y, &saved});
  expect_same_on_host(forward.geometry.y(), y, kTolerance);
  Block dy = tensor(forward.geometry.y(), random_values(forward.geometry.y().elements(), 2));
  Block dx = tensor(forward.geometry.x);
  run(AttentionBackward{.geometry = forward.geometry}, {&x, &y, &dy, &saved, &dx});
  // In bfloat16 y is rounded by 2^-9, whose product with dy a whole head sums up.
  const double rounding =
      has_float_tensors() ? 0 : std::ldexp(2 * std::sqrt(static_cast<double>(kWidestHead)), -9);
  expect_same_on_host(forward.geometry.x, dx, kTolerance + rounding);
}

TEST_F(WidestHead, IsNamedWhereOneIsWider) {
  EXPECT_EQ(
      test::refusal([&] { return make_kernel(machine(), of_width(kWidestHead + 1)) != nullptr; }),
      "attention's heads of 154 numbers are too wide for a GPU; it takes up to 153");
}

class UndroppedAttention : public KernelRunner {};

// There are 16384 numbers of a step for all kernels together.
TEST_F(UndroppedAttention, NeedsNoNumberOfTheStep) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < 16385; ++i) kernels.push_back(make_kernel(machine(), of_width(4)));
  const AttentionBackward backward{.geometry = of_width(4).geometry};
  EXPECT_EQ(test::refusal([&] { return make_kernel(machine(), backward) != nullptr; }), "accepted");
}

}  // namespace
}  // namespace spillway::cuda
