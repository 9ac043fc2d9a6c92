#include <ostream>
#include <tuple>

#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"

namespace spillway::host {
namespace {

struct ConvolutionCase {
  std::size_t batch;
  nets::Shape image;
  std::size_t out;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;
  nets::Extent dilation = nets::square(1);
  std::size_t groups = 1;

  [[nodiscard]] ConvolutionGeometry geometry() const {
    const TensorShape x{.batch = batch, .image = image};
    return {.x = x,
            .y = output_shape(x, out, kernel, stride, padding, dilation),
            .kernel = kernel,
            .stride = stride,
            .padding = padding,
            .bias = bias,
            .dilation = dilation,
            .groups = groups};
  }
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const ConvolutionCase& c, std::ostream* out) {
  *out << c.batch << " x " << nets::Shape{c.image}.channels << "x" << c.image.height << "x"
       << c.image.width << " to " << c.out << ", kernel " << c.kernel.height << "x"
       << c.kernel.width << ", stride " << c.stride.height << "x" << c.stride.width << ", dilation "
       << c.dilation.height << "x" << c.dilation.width << ", " << c.groups << " groups";
}

class Convolution : public KernelRunner, public testing::WithParamInterface<ConvolutionCase> {
 protected:
  [[nodiscard]] static std::size_t terms(const ConvolutionGeometry& g) {
    return g.x.image.channels * g.kernel.height * g.kernel.width;
  }

  const ConvolutionGeometry g_ = GetParam().geometry();
  const Values x_ = random_values(g_.x.elements(), 1);
  const Values dy_ = random_values(g_.y.elements(), 2);
  const Values w_ = random_values(element_count(g_.parameters()), 3);
  // The Winograd transforms F(4,3) multiply by up to 8 and add up rows of such numbers, once for
  // each direction; Lavin and Gray ("Fast algorithms for convolutional neural networks", 2016)
  // measured about twenty times the error of a direct convolution.
  static constexpr double kWinogradLoss = 20;
};

TEST_P(Convolution, ForwardIsTheSumOverTheKernel) {
  for (const bool relu : {false, true}) {
    Block x = tensor(g_.x, x_);
    Block w = parameters(g_.parameters(), w_);
    Block y = tensor(g_.y);
    run_with("direct", ConvolutionForward{.geometry = g_, .relu = relu}, {&x, &w, &y});
    const Values expected = naive_convolution(g_, x_, w_);
    expect_near(values(g_.y, y), relu ? naive_relu(expected) : expected, sum_tolerance(terms(g_)));
  }
}

TEST_P(Convolution, BackwardDataIsTheTransposedSum) {
  Block dy = tensor(g_.y, dy_);
  Block w = parameters(g_.parameters(), w_);
  Block dx = tensor(g_.x);
  run_with("direct", ConvolutionBackwardData{.geometry = g_}, {&dy, &w, &dx});
  Values expected(x_.size(), 0.0);
  for_each_product(g_, [&](std::size_t to, std::size_t from, std::size_t weight) {
    expected[from] += dy_[to] * w_[weight];
  });
  const std::size_t terms = g_.y.image.channels * g_.kernel.height * g_.kernel.width;
  expect_near(values(g_.x, dx), expected, sum_tolerance(terms));
}

TEST_P(Convolution, BackwardWeightsSumsOverBatchAndPixels) {
  Block x = tensor(g_.x, x_);
  Block dy = tensor(g_.y, dy_);
  Block dw = parameters(g_.parameters());
  run_with("direct", ConvolutionBackwardWeights{.geometry = g_}, {&x, &dy, &dw});
  Values expected(w_.size(), 0.0);
  for_each_product(g_, [&](std::size_t to, std::size_t from, std::size_t weight) {
    expected[weight] += dy_[to] * x_[from];
  });
  for (std::size_t i = 0; g_.bias && i < dy_.size(); ++i) {
    expected[w_.size() - g_.y.image.channels + channel_of(g_.y, i)] += dy_[i];
  }
  const std::size_t terms = g_.y.elements() / g_.y.image.channels;
  expect_near(values(g_.parameters(), dw), expected, sum_tolerance(terms));
}

TEST_P(Convolution, WinogradAgreesWithDirectWhereItIsOffered) {
  const ConvolutionForward forward{.geometry = g_, .relu = true};
  const ConvolutionBackwardData backward_data{.geometry = g_};
  const ConvolutionBackwardWeights backward_weights{.geometry = g_};
  Block x = tensor(g_.x, x_);
  Block dy = tensor(g_.y, dy_);
  Block w = parameters(g_.parameters(), w_);
  if (offers(forward, "winograd")) {
    Block direct = tensor(g_.y);
    Block winograd = tensor(g_.y);
    run_with("direct", forward, {&x, &w, &direct});
    run_with("winograd", forward, {&x, &w, &winograd});
    expect_near(values(g_.y, winograd), values(g_.y, direct),
                kWinogradLoss * sum_tolerance(terms(g_)));
  }
  if (offers(backward_data, "winograd")) {
    Block direct = tensor(g_.x);
    Block winograd = tensor(g_.x);
    run_with("direct", backward_data, {&dy, &w, &direct});
    run_with("winograd", backward_data, {&dy, &w, &winograd});
    expect_near(values(g_.x, winograd), values(g_.x, direct),
                kWinogradLoss * sum_tolerance(9 * g_.y.image.channels));
  }
  if (offers(backward_weights, "winograd")) {
    Block direct = parameters(g_.parameters());
    Block winograd = parameters(g_.parameters());
    run_with("direct", backward_weights, {&x, &dy, &direct});
    run_with("winograd", backward_weights, {&x, &dy, &winograd});
    expect_near(values(g_.parameters(), winograd), values(g_.parameters(), direct),
                kWinogradLoss * sum_tolerance(g_.y.elements() / g_.y.image.channels));
  }
}

TEST_P(Convolution, GivesTheSameBitsAgain) {
  Block x = tensor(g_.x, x_);
  Block dy = tensor(g_.y, dy_);
  Block w = parameters(g_.parameters(), w_);
  const auto twice_the_same = [&](const Operation& operation, Block& a, Block& b, Block first,
                                  Block second) {
    for (const AlgorithmInfo& info : backend().algorithms(operation)) {
      run_with(info.name, operation, {&a, &b, &first});
      run_with(info.name, operation, {&a, &b, &second});
      EXPECT_EQ(first.bytes(), second.bytes()) << info.name;
    }
  };
  twice_the_same(ConvolutionForward{.geometry = g_}, x, w, tensor(g_.y), tensor(g_.y));
  twice_the_same(ConvolutionBackwardData{.geometry = g_}, dy, w, tensor(g_.x), tensor(g_.x));
  twice_the_same(ConvolutionBackwardWeights{.geometry = g_}, x, dy, parameters(g_.parameters()),
                 parameters(g_.parameters()));
}

constexpr nets::Extent kNone = nets::square(0);
constexpr nets::Extent kOne = nets::square(1);
constexpr nets::Extent kTwo = nets::square(2);
constexpr nets::Extent kThree = nets::square(3);

INSTANTIATE_TEST_SUITE_P(
    Shapes, Convolution,
    testing::Values(
        ConvolutionCase{1, {3, 9, 8}, 10, kThree, kOne, kOne, true},  // a first layer
        ConvolutionCase{3, {3, 15, 13}, 20, nets::square(7), kTwo, kThree, false},
        ConvolutionCase{3, {1, 12, 12}, 6, nets::square(5), kOne, kTwo, true},
        ConvolutionCase{1, {6, 7, 5}, 16, kThree, kOne, kOne, true},   // LeNet's odd channels
        ConvolutionCase{3, {10, 6, 6}, 33, kOne, kOne, kNone, false},  // 1x1
        ConvolutionCase{3, {20, 7, 6}, 33, kOne, kTwo, kNone, true},
        ConvolutionCase{3, {16, 8, 9}, 32, kThree, kTwo, kOne, true},
        ConvolutionCase{1, {33, 6, 7}, 20, {3, 2}, {2, 1}, {1, 0}, true},  // nothing is square
        ConvolutionCase{3, {16, 5, 5}, 24, nets::square(5), kOne, kNone, true},  // to one pixel
        ConvolutionCase{3, {32, 13, 14}, 48, kThree, kOne, kOne, true},          // Winograd
        ConvolutionCase{1, {64, 8, 8}, 64, kThree, kOne, kOne, false},
        ConvolutionCase{2, {32, 9, 8}, 48, {1, 7}, kOne, {0, 3}, false},  // Inception's
        ConvolutionCase{2, {32, 9, 8}, 20, {7, 1}, kOne, {3, 0}, false},
        ConvolutionCase{1, {16, 8, 8}, 32, {1, 3}, kOne, {0, 1}, false},
        ConvolutionCase{1, {48, 7, 8}, 64, nets::square(5), kOne, kTwo, false},
        ConvolutionCase{1, {3, 27, 23}, 96, nets::square(11), nets::square(4), kNone, true},
        ConvolutionCase{1, {20, 5, 6}, 3, kThree, kOne, kOne, true},  // to an image
        ConvolutionCase{3, {2, 5, 6}, 3, kThree, kOne, kOne, true}));

// AlexNet's two groups, ResNeXt's small ones, depthwise ones with one and three outputs a channel,
// groups that cut blocks of channels in two.
INSTANTIATE_TEST_SUITE_P(
    Groups, Convolution,
    testing::Values(ConvolutionCase{2, {64, 7, 9}, 32, kThree, kOne, kOne, true, kOne, 2},
                    ConvolutionCase{1, {32, 6, 5}, 32, kThree, kTwo, kOne, false, kOne, 8},
                    ConvolutionCase{2, {20, 7, 5}, 20, kThree, kOne, kOne, true, kOne, 20},
                    ConvolutionCase{1, {32, 9, 7}, 32, {3, 5}, {2, 1}, {1, 2}, true, kOne, 32},
                    ConvolutionCase{3, {3, 6, 7}, 9, kThree, kOne, kOne, true, kOne, 3},
                    ConvolutionCase{2, {20, 5, 6}, 30, {2, 3}, {1, 2}, {0, 1}, true, {2, 1}, 10}));

INSTANTIATE_TEST_SUITE_P(
    Dilation, Convolution,
    testing::Values(ConvolutionCase{2, {32, 13, 11}, 48, kThree, kOne, kTwo, true, kTwo},
                    ConvolutionCase{1, {3, 15, 14}, 20, kThree, kTwo, kOne, true, {3, 2}},
                    ConvolutionCase{2, {20, 11, 13}, 33, {3, 2}, kOne, {4, 0}, false, {4, 5}},
                    ConvolutionCase{1, {16, 9, 8}, 16, kThree, {1, 2}, kOne, true, {1, 2}}));

// The definition of the gradient, beside the formulas above.
class SlopeOfConvolution : public KernelRunner,
                           public testing::WithParamInterface<ConvolutionCase> {};

TEST_P(SlopeOfConvolution, IsItsGradient) {
  const ConvolutionGeometry g = GetParam().geometry();
  const Values x = random_values(g.x.elements(), 4);
  const Values w = random_values(element_count(g.parameters()), 5);
  const Values dy = random_values(g.y.elements(), 6);
  Block x_block = tensor(g.x, x);
  Block w_block = parameters(g.parameters(), w);
  Block dy_block = tensor(g.y, dy);
  Block dx = tensor(g.x);
  Block dw = parameters(g.parameters());

  run(ConvolutionBackwardData{.geometry = g}, {&dy_block, &w_block, &dx});
  run(ConvolutionBackwardWeights{.geometry = g}, {&x_block, &dy_block, &dw});

  expect_near(
      values(g.x, dx),
      numeric_gradient(x, [&](const Values& at) { return dot(dy, naive_convolution(g, at, w)); }),
      sum_tolerance(36));
  expect_near(
      values(g.parameters(), dw),
      numeric_gradient(w, [&](const Values& at) { return dot(dy, naive_convolution(g, x, at)); }),
      sum_tolerance(18));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SlopeOfConvolution,
    testing::Values(ConvolutionCase{2, {5, 5, 4}, 6, {3, 2}, kTwo, kOne, true},
                    ConvolutionCase{2, {6, 7, 5}, 9, {3, 2}, {2, 1}, {2, 1}, true, {2, 3}, 3}));

class ConvolutionGradient : public KernelRunner {};

TEST_F(ConvolutionGradient, OfferedWinogradNeedsMoreWorkspace) {
  if (backend().layout().block() != 16) GTEST_SKIP() << "oneDNN has Winograd for AVX-512 only";
  const ConvolutionGeometry g =
      ConvolutionCase{1, {64, 28, 28}, 64, kThree, kOne, kOne, false}.geometry();
  if (onednn_version().starts_with("oneDNN 3")) GTEST_SKIP() << "oneDNN 3 has no Winograd";
  for (const Operation& operation : {Operation{ConvolutionForward{.geometry = g}},
                                     Operation{ConvolutionBackwardData{.geometry = g}},
                                     Operation{ConvolutionBackwardWeights{.geometry = g}}}) {
    const auto algorithms = backend().algorithms(operation);
    ASSERT_EQ(algorithms.size(), 2U);
    EXPECT_EQ(algorithms[0].name, "direct");
    EXPECT_EQ(algorithms[1].name, "winograd");
    EXPECT_LT(algorithms[0].workspace, algorithms[1].workspace);
  }
}

}  // namespace
}  // namespace spillway::host
