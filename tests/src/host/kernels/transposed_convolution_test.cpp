#include <ostream>

#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"

namespace spillway::host {
namespace {

struct Case {
  std::size_t batch;
  nets::Shape image;
  nets::TransposedConvolution layer;

  [[nodiscard]] TransposedConvolutionGeometry geometry() const {
    const auto side = [](std::size_t n, std::size_t s, std::size_t p, std::size_t d, std::size_t k,
                         std::size_t more) { return (n - 1) * s + d * (k - 1) + 1 + more - 2 * p; };
    const auto& l = layer;
    const std::size_t height = side(image.height, l.stride.height, l.padding.height,
                                    l.dilation.height, l.kernel.height, l.output_padding.height);
    const std::size_t width = side(image.width, l.stride.width, l.padding.width, l.dilation.width,
                                   l.kernel.width, l.output_padding.width);
    return {.x = {batch, image},
            .y = {batch, {layer.channels, height, width}},
            .kernel = l.kernel,
            .stride = l.stride,
            .padding = l.padding,
            .bias = l.bias,
            .dilation = l.dilation,
            .groups = l.groups};
  }
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << " x " << to_string(c.image) << ", " << nets::to_string(nets::Layer{c.layer});
}

// By the definition: each pixel of x adds its multiple of the kernel to y.
Values naive(const TransposedConvolutionGeometry& g, const Values& x, const Values& parameters) {
  const std::size_t channels = g.y.image.channels;
  Values y(g.y.elements(), 0.0);
  for (std::size_t i = 0; g.bias && i < y.size(); ++i) {
    y[i] = parameters[parameters.size() - channels + channel_of(g.y, i)];
  }
  for_each_product(g.adjoint(), [&](std::size_t from, std::size_t to, std::size_t weight) {
    y[to] += x[from] * parameters[weight];
  });
  return y;
}

class TransposedConvolution : public KernelRunner, public testing::WithParamInterface<Case> {
 protected:
  [[nodiscard]] std::size_t taps() const { return g_.kernel.height * g_.kernel.width; }

  const TransposedConvolutionGeometry g_ = GetParam().geometry();
  const Values x_ = random_values(g_.x.elements(), 1);
  const Values dy_ = random_values(g_.y.elements(), 2);
  const Values w_ = random_values(element_count(g_.parameters()), 3);
};

TEST_P(TransposedConvolution, ForwardAddsAMultipleOfTheKernelForEachPixel) {
  for (const bool relu : {false, true}) {
    const TransposedConvolutionForward forward{.geometry = g_, .relu = relu};
    const Values expected = relu ? naive_relu(naive(g_, x_, w_)) : naive(g_, x_, w_);
    for (const AlgorithmInfo& algorithm : backend().algorithms(forward)) {
      Block x = tensor(g_.x, x_);
      Block w = parameters(g_.parameters(), w_);
      Block y = tensor(g_.y);
      run_with(algorithm.name, forward, {&x, &w, &y});
      const double loss = algorithm.name == "winograd" ? 20 : 1;  // as in convolution_test.cpp
      expect_near(values(g_.y, y), expected, loss * sum_tolerance(taps() * g_.x.image.channels));
    }
  }
}

TEST_P(TransposedConvolution, GradientsAreTheSlopesOfTheForwardPass) {
  Block x = tensor(g_.x, x_);
  Block w = parameters(g_.parameters(), w_);
  Block dy = tensor(g_.y, dy_);
  Block dx = tensor(g_.x);
  Block dw = parameters(g_.parameters());
  run(TransposedConvolutionBackwardData{.geometry = g_}, {&dy, &w, &dx});
  run(TransposedConvolutionBackwardWeights{.geometry = g_}, {&x, &dy, &dw});
  expect_near(values(g_.x, dx),
              numeric_gradient(x_, [&](const Values& at) { return dot(dy_, naive(g_, at, w_)); }),
              sum_tolerance(taps() * g_.y.image.channels));
  expect_near(values(g_.parameters(), dw),
              numeric_gradient(w_, [&](const Values& at) { return dot(dy_, naive(g_, x_, at)); }),
              sum_tolerance(g_.y.elements() / g_.y.image.channels));
}

TEST_P(TransposedConvolution, GivesTheSameBitsAgain) {
  Block x = tensor(g_.x, x_);
  Block w = parameters(g_.parameters(), w_);
  Block dy = tensor(g_.y, dy_);
  Block dw = parameters(g_.parameters());
  Block same_dw = parameters(g_.parameters());
  Block y = tensor(g_.y);
  Block same_y = tensor(g_.y);
  for (Block* block : {&dw, &same_dw}) {
    run(TransposedConvolutionBackwardWeights{.geometry = g_}, {&x, &dy, block});
  }
  for (Block* block : {&y, &same_y}) {
    run(TransposedConvolutionForward{.geometry = g_, .relu = true}, {&x, &w, block});
  }
  EXPECT_EQ(dw.bytes(), same_dw.bytes());
  EXPECT_EQ(y.bytes(), same_y.bytes());
}

constexpr nets::Extent kOne = nets::square(1);
constexpr nets::Extent kTwo = nets::square(2);
constexpr nets::Extent kThree = nets::square(3);

// FCN's doubling, and kernels too large for oneDNN's fast implementations, with and without
// padding; a kernel that leaves gaps; nothing square, with the stride's rest; dilated; to
// and from images; groups that fill blocks, and do not; a 3x3 that has a Winograd; one pixel.
INSTANTIATE_TEST_SUITE_P(
    Shapes, TransposedConvolution,
    testing::Values(Case{2, {5, 3, 4}, {5, nets::square(4), kTwo, {0, 0}, false}},
                    Case{1, {2, 2, 3}, {2, nets::square(16), nets::square(8), {3, 0}, true}},
                    Case{2, {5, 2, 1}, {4, {34, 16}, {17, 8}, {0, 5}, true, kOne, 1, {2, 3}}},
                    Case{1, {6, 3, 2}, {10, kTwo, kThree}},
                    Case{1, {4, 3, 4}, {7, {3, 4}, {2, 3}, {1, 2}, true, kOne, 1, {1, 2}}},
                    Case{1, {3, 4, 3}, {4, {2, 3}, {2, 1}, kOne, true, {3, 2}}},
                    Case{2, {5, 2, 3}, {3, kThree, kTwo, kOne, true, kOne, 1, kOne}},
                    Case{1, {32, 2, 2}, {32, kTwo, kTwo, {0, 0}, true, kOne, 2}},
                    Case{1, {6, 3, 2}, {9, kThree, kTwo, kOne, true, kOne, 3, {1, 0}}},
                    Case{1, {16, 4, 5}, {32, kThree, kOne, kOne, true}},
                    Case{2, {3, 1, 1}, {5, {4, 3}, kOne}}));

}  // namespace
}  // namespace spillway::host
