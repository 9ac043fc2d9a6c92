#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"

namespace spillway::host {
namespace {

class Linear : public KernelRunner, public testing::WithParamInterface<LinearGeometry> {
 protected:
  const LinearGeometry g_ = GetParam();
  const TensorShape y_shape_{.batch = g_.x.batch, .image = {.channels = g_.features}};
  const Values x_ = random_values(g_.x.elements(), 1);
  const Values dy_ = random_values(y_shape_.elements(), 2);
  const Values w_ = random_values(element_count(g_.parameters()), 3);
};

TEST_P(Linear, ForwardIsAMatrixTimesTheImage) {
  for (const bool relu : {false, true}) {
    Block x = tensor(g_.x, x_);
    Block w = parameters(g_.parameters(), w_);
    Block y = tensor(y_shape_);
    run(LinearForward{.geometry = g_, .relu = relu}, {&x, &w, &y});
    const Values expected = naive_linear(g_, x_, w_);
    expect_near(values(y_shape_, y), relu ? naive_relu(expected) : expected,
                sum_tolerance(g_.x.image.elements()));
  }
}

TEST_P(Linear, GradientsAreTheSlopesOfTheForwardPass) {
  Block x = tensor(g_.x, x_);
  Block w = parameters(g_.parameters(), w_);
  Block dy = tensor(y_shape_, dy_);
  Block dx = tensor(g_.x);
  Block dw = parameters(g_.parameters());

  run(LinearBackwardData{.geometry = g_}, {&dy, &w, &dx});
  run(LinearBackwardWeights{.geometry = g_}, {&x, &dy, &dw});

  expect_near(
      values(g_.x, dx),
      numeric_gradient(x_, [&](const Values& at) { return dot(dy_, naive_linear(g_, at, w_)); }),
      sum_tolerance(g_.features));
  expect_near(
      values(g_.parameters(), dw),
      numeric_gradient(w_, [&](const Values& at) { return dot(dy_, naive_linear(g_, x_, at)); }),
      sum_tolerance(g_.x.batch));
}

TEST_P(Linear, GivesTheSameBitsAgain) {
  Block x = tensor(g_.x, x_);
  Block w = parameters(g_.parameters(), w_);
  Block dy = tensor(y_shape_, dy_);
  const auto twice_the_same = [&](const Operation& operation, Block& a, Block& b, Block first,
                                  Block second) {
    run(operation, {&a, &b, &first});
    run(operation, {&a, &b, &second});
    EXPECT_EQ(first.bytes(), second.bytes());
  };
  twice_the_same(LinearForward{.geometry = g_}, x, w, tensor(y_shape_), tensor(y_shape_));
  twice_the_same(LinearBackwardData{.geometry = g_}, dy, w, tensor(g_.x), tensor(g_.x));
  twice_the_same(LinearBackwardWeights{.geometry = g_}, x, dy, parameters(g_.parameters()),
                 parameters(g_.parameters()));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Linear,
    testing::Values(LinearGeometry{{3, {20, 1, 1}}, 10, true},
                    LinearGeometry{{1, {16, 3, 2}}, 33, true},
                    LinearGeometry{{3, {6, 2, 3}}, 16, false},  // images with padding channels
                    LinearGeometry{{3, {1, 4, 4}}, 6, true},    // dense images
                    LinearGeometry{{3, {33, 1, 1}}, 2, true},   // dense logits
                    LinearGeometry{{1, {3, 1, 1}}, 3, false}));

}  // namespace
}  // namespace spillway::host
