// Compares kernels with the host backend on shapes of real networks: ResNet-50 on images of 224 by
// 224 pixels, and shapes with a remainder in each dimension.
#include "nets/shape_inference.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// Returns the tolerance for sums of `count` floats around 1 on both sides, plus a division and a
// root.
double tolerance_of(std::size_t count) { return 1e-4 + 2 * sum_tolerance(count); }

class RealImages : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  [[nodiscard]] Block drawn(unsigned seed) {
    return tensor(shape_, random_values(shape_.elements(), seed));
  }
  [[nodiscard]] std::size_t pixels() const { return shape_.elements() / shape_.image.channels; }

  const TensorShape shape_ = GetParam();
};

TEST_P(RealImages, AreNormalisedForwardAndBackwardAsOnTheHost) {
  const BatchNormParameters spec{.channels = shape_.image.channels};
  const BatchNormStatistics statistics{.channels = shape_.image.channels};
  const BatchNormForward forward{.x = shape_, .epsilon = 1e-3F, .momentum = 0.1F, .relu = true};
  Block x = drawn(1);
  Block gamma_beta = parameters(spec, Values(2 * spec.channels, 0.5));
  Block running = parameters(statistics, Values(2 * spec.channels, 1.0));
  Block y = tensor(shape_);
  Block saved = parameters(statistics);
  Block mask = saved_by(forward);
  run(forward, {&x, &gamma_beta, &y, &saved, &running, &mask});
  expect_same_on_host(shape_, y, 1e-4);
  expect_same_on_host(statistics, running, 1e-4);

  Block dy = drawn(2);
  Block dx = tensor(shape_);
  Block gradient = parameters(spec);
  // Without the ReLU: where y is almost zero, the two may disagree on its slope.
  run(BatchNormBackward{.x = shape_, .epsilon = 1e-3F},
      {&x, &dy, &gamma_beta, &saved, &dx, &gradient});
  expect_same_on_host(shape_, dx, 1e-4);
  expect_same_on_host(spec, gradient, tolerance_of(pixels()));
}

TEST_P(RealImages, AreAddedAndRectifiedAsOnTheHost) {
  Block a = drawn(1);
  Block b = drawn(2);
  Block y = tensor(shape_);
  run(AddForward{.x = shape_, .relu = true}, {&a, &b, &y});
  expect_same_on_host(shape_, y);
  Block d = tensor(shape_);
  run(AddGradients{.x = shape_, .relu = true}, {&a, &b, &y, &d});
  expect_same_on_host(shape_, d);
  const AddForward masked{.x = shape_, .relu = true, .saves_mask = true};
  Block mask = saved_by(masked);
  run(masked, {&a, &b, &y, &mask});
  run(AddGradients{.x = shape_, .relu = true, .by_mask = true, .twice = true},
      {&a, &b, &mask, &a, &b});
  EXPECT_EQ(a.bytes(), d.bytes());
  EXPECT_EQ(b.bytes(), d.bytes());
}

// A window of (3, 3) with stride 2 and padding, and a window as large as the image.
TEST_P(RealImages, ArePooledForwardAndBackwardAsOnTheHost) {
  const nets::Extent whole{shape_.image.height, shape_.image.width};
  for (const nets::Pool& pool :
       {nets::Pool{nets::PoolKind::kMax, nets::square(3), nets::square(2), nets::square(1)},
        nets::Pool{nets::PoolKind::kAverage, whole, whole}}) {
    const TensorShape pooled{shape_.batch, nets::infer_shape("pool", pool, {shape_.image})};
    const PoolForward forward{.x = shape_, .y = pooled, .pool = pool};
    Block x = drawn(1);
    Block y = tensor(pooled);
    Block index = saved_by(forward);
    Block dy = tensor(pooled, random_values(pooled.elements(), 2));
    Block dx = tensor(shape_);
    const PoolBackward backward{.x = shape_, .y = pooled, .pool = pool};
    if (pool.kind == nets::PoolKind::kMax) {
      run(forward, {&x, &y, &index});
      run(backward, {&dy, &index, &dx});
    } else {
      run(forward, {&x, &y});
      run(backward, {&dy, &dx});
    }
    expect_same_on_host(pooled, y, tolerance_of(pixels()));
    expect_same_on_host(shape_, dx, tolerance_of(4));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RealImages,
    ::testing::Values(TensorShape{1, {64, 112, 112}}, TensorShape{1, {256, 56, 56}},
                      TensorShape{2, {512, 28, 28}}, TensorShape{4, {1024, 14, 14}},
                      TensorShape{4, {2048, 7, 7}}, TensorShape{3, {37, 55, 57}}));

class RealLayers : public KernelRunner {};

TEST_F(RealLayers, LoadPhotographs) {
  const TensorShape shape{2, {3, 224, 224}};
  const Values images = host::random_values(shape.elements(), 1);
  const Batch batch{.images{images.begin(), images.end()}, .labels = {7, 999}};
  Block x = tensor(shape);
  Block labels = bytes(um::Bytes{2 * sizeof(std::int32_t)});
  run(LoadBatch{.x = shape}, {&x, &labels}, {.batch = &batch});
  expect_same_on_host(shape, x);
}

TEST_F(RealLayers, JudgeAThousandClasses) {
  const TensorShape shape{32, {.channels = 1000}};
  Block logits = tensor(shape, random_values(shape.elements(), 1));
  std::vector<std::int32_t> labels(shape.batch);
  for (std::size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<std::int32_t>(31 * n);
  Block label = numbers(labels);
  Block result = bytes(um::Bytes{2 * sizeof(float)});
  Block dlogits = tensor(shape);
  run(SoftmaxCrossEntropyTrain{.x = shape}, {&logits, &label, &result, &dlogits});
  expect_same_on_host(shape, dlogits, 1e-6);
}

// ResNet-50's last layer, and biases with a remainder.
TEST_F(RealLayers, UpdateMillionsOfParameters) {
  for (const ParameterSpec& spec : {ParameterSpec{LinearParameters{1000, {2048, 1, 1}, true}},
                                    {ConvolutionParameters{129, 67, nets::square(3), true}}}) {
    const std::size_t count = element_count(spec);
    const Values w = host::random_values(count, 1);
    const Values gradient = host::random_values(count, 2);
    Block parameter = parameters(spec, w);
    Block momentum = parameters(spec, Values(count, 0.0));
    Block dw = parameters(spec, gradient);
    run(UpdateParameters{.parameters = spec,
                         .options = SgdOptions{.momentum = 0.9F, .weight_decay = 1e-4F}},
        {&parameter, &momentum, &dw, &parameter, &momentum}, {.learning_rate = 0.1F});
    expect_same_on_host(spec, parameter);
    expect_same_on_host(spec, momentum);
  }
}

}  // namespace
}  // namespace spillway::test
