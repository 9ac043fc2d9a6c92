// Layers that our kernels for GPUs cannot compute are named, before anything is launched.
#include <memory>
#include <string>

#include "tests/refusal.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

class KernelLimits : public KernelRunner {
 protected:
  template <class Op>
  [[nodiscard]] std::string refusal_of(const Op& op) {
    return test::refusal([&] { return make_kernel(machine(), op) != nullptr; });
  }
};

PoolForward pool_of(nets::PoolKind kind, const nets::Extent& kernel) {
  return {.x = {.batch = 1, .image = {.channels = 1, .height = 32, .width = 32}},
          .y = {.batch = 1, .image = {.channels = 1, .height = 1, .width = 1}},
          .pool = {.kind = kind, .kernel = kernel, .stride = nets::square(32)}};
}

// A byte says where in its window a maximum is.
TEST_F(KernelLimits, AreAByteOfPixelsOfAMaximum) {
  EXPECT_EQ(refusal_of(pool_of(nets::PoolKind::kMax, nets::square(16))), "accepted");
  EXPECT_EQ(refusal_of(pool_of(nets::PoolKind::kAverage, nets::square(32))), "accepted");
  EXPECT_EQ(refusal_of(pool_of(nets::PoolKind::kMax, {.height = 8, .width = 33})),
            "max pooling over 8x33 pixels is too large for a GPU; it takes windows of up to 256 "
            "pixels");
}

// Three lines of the channels and a border of half a window on either side: 48 KiB of floats.
TEST_F(KernelLimits, AreTheChannelsThatFitIntoSharedMemory) {
  const auto norm_of = [](std::size_t channels) {
    const TensorShape x{.batch = 1, .image = {.channels = channels, .height = 1, .width = 1}};
    return LrnForward{.x = x, .norm = {.size = 9}};
  };
  EXPECT_EQ(refusal_of(norm_of(4088)), "accepted");
  EXPECT_EQ(refusal_of(norm_of(4096)),
            "local response norm over 4104 channels, with those that its windows stick out, is too "
            "large for a GPU; it takes up to 4096");
}

}  // namespace
}  // namespace spillway::cuda
