// The gradients of layers that have no weights, and of ReLUs fused to those that have, beside the
// slopes of their definitions in double. Where a definition has a kink, the numbers are such that
// it is far from there.

#include <cmath>

#include "src/ops/convolution_geometry.h"
#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"

namespace spillway::host {
namespace {

// Fails the test unless the largest error is at most `relative` times the largest slope. Central
// differences of functions that are linear within a step err by 1e-16 / 1e-5 of the loss, which is
// a sum of up to a thousand terms: 1e-8. Float kernels err by a few 2^-24 = 6e-8.
void expect_slopes(const Values& gradient, const Values& slopes, double relative = 1e-6) {
  double largest = 0;
  for (const double slope : slopes) largest = std::max(largest, std::abs(slope));
  ASSERT_GT(largest, 0);
  expect_near(gradient, slopes, relative * largest);
}

// At least 0.1 away from zero, of either sign.
Values away_from_zero(std::size_t count, unsigned seed) {
  Values values = random_values(count, seed);
  for (double& value : values) {
    value = static_cast<double>(static_cast<float>(value + (value < 0 ? -0.1 : 0.1)));
  }
  return values;
}

Values sum(const Values& a, const Values& b) {
  Values result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] + b[i];
  return result;
}

class SlopeOfElements : public KernelRunner, public testing::WithParamInterface<TensorShape> {
 protected:
  const TensorShape shape_ = GetParam();
  const Values dy_ = random_values(shape_.elements(), 1);
};

TEST_P(SlopeOfElements, OfAReluIsItsGradient) {
  const Values at = away_from_zero(shape_.elements(), 2);
  Block x = tensor(shape_, at);
  Block y = tensor(shape_);
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  run(ReluForward{.x = shape_}, {&x, &y});
  run(ReluBackward{.x = shape_}, {&y, &dy, &dx});
  expect_slopes(values(shape_, dx), numeric_gradient(at, [&](const Values& near) {
                  return dot(dy_, naive_relu(near));
                }));
}

// Both terms get the same gradient: that of the sum, through the ReLU.
TEST_P(SlopeOfElements, OfASumWithReluIsItsGradient) {
  const Values first = random_values(shape_.elements(), 3);
  Values second = away_from_zero(shape_.elements(), 4);  // so is the sum
  for (std::size_t i = 0; i < second.size(); ++i) second[i] -= first[i];
  Block a = tensor(shape_, first);
  Block b = tensor(shape_, second);
  Block y = tensor(shape_);
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  run(AddForward{.x = shape_, .relu = true}, {&a, &b, &y});
  run(ReluBackward{.x = shape_}, {&y, &dy, &dx});
  const Values gradient = values(shape_, dx);
  expect_slopes(gradient, numeric_gradient(first, [&](const Values& near) {
                  return dot(dy_, naive_relu(sum(near, second)));
                }));
  expect_slopes(gradient, numeric_gradient(second, [&](const Values& near) {
                  return dot(dy_, naive_relu(sum(first, near)));
                }));
}

TEST_P(SlopeOfElements, OfWhatTwoReadIsTheSumOfTheirGradients) {
  const Values at = away_from_zero(shape_.elements(), 5);
  const Values other = random_values(shape_.elements(), 6);
  Block x = tensor(shape_, at);
  Block y = tensor(shape_);
  Block dy = tensor(shape_, dy_);
  Block dother = tensor(shape_, other);
  Block d = tensor(shape_);
  run(AddGradients{.x = shape_}, {&dy, &dother, &d});
  expect_slopes(values(shape_, d), numeric_gradient(at, [&](const Values& near) {
                  return dot(dy_, near) + dot(other, near);
                }));
  run(ReluForward{.x = shape_}, {&x, &y});
  run(AddGradients{.x = shape_, .relu = true}, {&dy, &dother, &y, &d});
  expect_slopes(values(shape_, d), numeric_gradient(at, [&](const Values& near) {
                  return dot(dy_, naive_relu(near)) + dot(other, naive_relu(near));
                }));
}

// The mask is what dropout makes of ones; backward draws it again.
TEST_P(SlopeOfElements, OfADropoutWithItsMaskIsItsGradient) {
  const StepContext context{.seed = 7, .step = 3};
  const Values at = random_values(shape_.elements(), 7);
  Block ones = tensor(shape_, Values(shape_.elements(), 1.0));
  Block y = tensor(shape_);
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  run(DropoutForward{.x = shape_, .probability = 0.3F, .stream = 2}, {&ones, &y}, context);
  const Values mask = values(shape_, y);
  run(DropoutBackward{.x = shape_, .probability = 0.3F, .stream = 2}, {&dy, &dx}, context);
  expect_slopes(values(shape_, dx), numeric_gradient(at, [&](const Values& near) {
                  Values kept = near;
                  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] *= mask[i];
                  return dot(dy_, kept);
                }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, SlopeOfElements,
                         testing::Values(TensorShape{1, {3, 5, 3}}, TensorShape{3, {6, 2, 5}},
                                         TensorShape{3, {16, 3, 3}}, TensorShape{1, {33, 1, 1}}));

class SlopeOfSlices : public KernelRunner {
 protected:
  // The part of `whole` that `shape` is, from this channel, row and column on.
  struct Slice {
    TensorShape whole;
    TensorShape shape;
    std::size_t channel = 0;
    nets::Extent offset = nets::square(0);

    template <class Visit>
    void for_each(const Visit& visit) const {
      const auto& [channels, height, width, form] = shape.image;
      for (std::size_t n = 0; n < shape.batch; ++n) {
        for (std::size_t c = 0; c < channels; ++c) {
          for (std::size_t at = 0; at < height * width; ++at) {
            visit(place(shape, n, c, at / width, at % width),
                  place(whole, n, channel + c, offset.height + at / width,
                        offset.width + at % width));
          }
        }
      }
    }
  };
};

// Three parts, the last of which another layer reads, too: its gradient is there already.
TEST_F(SlopeOfSlices, OfAConcatIsItsGradient) {
  const std::vector<TensorShape> parts{{2, {5, 3, 4}}, {2, {16, 3, 4}}, {2, {10, 3, 4}}};
  const TensorShape whole = ConcatForward{.parts = parts}.whole();
  const Values dy = random_values(whole.elements(), 1);
  const Values other = random_values(parts[2].elements(), 2);
  Block dy_block = tensor(whole, dy);
  std::vector<Block> d;
  d.reserve(parts.size());
  for (const TensorShape& part : parts) d.push_back(tensor(part));
  d[2] = tensor(parts[2], other);
  run(ConcatBackward{.y = whole,
                     .slices = {{parts[0], 0, false}, {parts[1], 5, false}, {parts[2], 21, true}}},
      {&dy_block, &d[2], &d[0], &d[1], &d[2]});
  std::size_t channel = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Slice slice{.whole = whole, .shape = parts[i], .channel = channel};
    const Values at = random_values(parts[i].elements(), 3);
    expect_slopes(values(parts[i], d[i]), numeric_gradient(at, [&](const Values& near) {
                    double loss = i == 2 ? dot(other, near) : 0;
                    slice.for_each([&](std::size_t part, std::size_t in_whole) {
                      loss += dy[in_whole] * near[part];
                    });
                    return loss;
                  }));
    channel += parts[i].image.channels;
  }
}

TEST_F(SlopeOfSlices, OfACropIsItsGradient) {
  const TensorShape x{2, {6, 7, 5}};
  const Slice window{.whole = x, .shape = {2, {6, 3, 4}}, .offset = {2, 1}};
  const Values dy = random_values(window.shape.elements(), 1);
  Block dy_block = tensor(window.shape, dy);
  Block dx = tensor(x);
  run(CropBackward{.x = x, .y = window.shape, .offset = window.offset}, {&dy_block, &dx});
  const Values at = random_values(x.elements(), 2);
  expect_slopes(values(x, dx), numeric_gradient(at, [&](const Values& near) {
                  double loss = 0;
                  window.for_each([&](std::size_t cropped, std::size_t in_x) {
                    loss += dy[cropped] * near[in_x];
                  });
                  return loss;
                }));
}

// Inputs and weights are whole numbers and biases halves: each sum is half a number from its kink.
class SlopeOfFusedRelu : public KernelRunner {
 protected:
  [[nodiscard]] static Values whole_numbers(std::size_t count, unsigned seed) {
    Values values = random_values(count, seed);
    for (double& value : values) value = std::round(2 * value);
    return values;
  }

  template <class Geometry>
  void expect_gradients(const Geometry& g) const {
    const TensorShape y_shape = y_of(g);
    const ParameterSpec spec = g.parameters();
    const Values at = whole_numbers(g.x.elements(), 1);
    Values w = whole_numbers(element_count(spec), 2);
    for (std::size_t i = w.size() - y_shape.image.channels; i < w.size(); ++i) w[i] += 0.5;
    const Values dy = random_values(y_shape.elements(), 3);
    Block x = tensor(g.x, at);
    Block weights = parameters(spec, w);
    Block y = tensor(y_shape);
    Block dsum = tensor(y_shape, dy);
    Block dx = tensor(g.x);
    Block dw = parameters(spec);
    run(WeightedForward<Geometry>{.geometry = g, .relu = true}, {&x, &weights, &y});
    run(ReluBackward{.x = y_shape}, {&y, &dsum, &dsum});
    run(WeightedBackwardData<Geometry>{.geometry = g}, {&dsum, &weights, &dx});
    run(WeightedBackwardWeights<Geometry>{.geometry = g}, {&x, &dsum, &dw});
    const auto loss = [&](const Values& x_near, const Values& w_near) {
      return dot(dy, naive_relu(naive_sums(g, x_near, w_near)));
    };
    expect_slopes(values(g.x, dx),
                  numeric_gradient(at, [&](const Values& near) { return loss(near, w); }));
    expect_slopes(values(spec, dw),
                  numeric_gradient(w, [&](const Values& near) { return loss(at, near); }));
  }
};

TEST_F(SlopeOfFusedRelu, OfAConvolutionIsItsGradient) {
  const TensorShape x{2, {6, 7, 5}};
  const nets::Convolution plain{9, {3, 2}, {2, 1}, {1, 1}};
  const nets::Convolution grouped{9, {3, 2}, {2, 1}, {1, 1}, true, {2, 1}, 3};
  const nets::Convolution dilated{9, {3, 2}, {2, 1}, {2, 1}, true, {2, 3}};
  const nets::Convolution depthwise{6, {3, 2}, {2, 1}, {2, 1}, true, {2, 3}, 6};
  for (const nets::Convolution& layer : {plain, grouped, dilated, depthwise}) {
    expect_gradients(geometry_of(layer, x, output_shape(x, layer)));
  }
}

TEST_F(SlopeOfFusedRelu, OfATransposedConvolutionIsItsGradient) {
  const TensorShape x{2, {4, 3, 2}};
  const nets::TransposedConvolution layer{5, {4, 2}, {2, 3}, {1, 0}};
  expect_gradients(geometry_of(layer, x, output_shape(x, layer)));
}

TEST_F(SlopeOfFusedRelu, OfALinearLayerIsItsGradient) {
  expect_gradients(LinearGeometry{.x = {3, {6, 2, 3}}, .features = 10, .bias = true});
}

}  // namespace
}  // namespace spillway::host
