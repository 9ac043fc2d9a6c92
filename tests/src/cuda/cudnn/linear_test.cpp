#include <tuple>

#include "tests/src/cuda/backend_runner.h"

namespace spillway::cuda {
namespace {

class CudaLinear : public BackendRunner,
                   public ::testing::WithParamInterface<std::tuple<Precision, LinearGeometry>> {
 protected:
  CudaLinear() : BackendRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] Operand weights() {
    return parameters(g_.parameters(), random(element_count(g_.parameters()), 3));
  }
  [[nodiscard]] Operand input() { return tensor(g_.x, random(g_.x.elements(), 1)); }
  [[nodiscard]] Operand gradient() { return tensor(y_, random(y_.elements(), 2)); }

  const LinearGeometry g_ = std::get<1>(GetParam());
  const TensorShape y_{.batch = g_.x.batch, .image = {.channels = g_.features}};
};

TEST_P(CudaLinear, ForwardIsTheHosts) {
  for (const bool relu : {false, true}) {
    const LinearForward forward{.geometry = g_, .relu = relu};
    Operand x = input();
    Operand w = weights();
    Operand y = tensor(y_);
    run_on_host(forward, {&x, &w, &y});
    run_first(forward, {&x, &w, &y});
    expect_products(values(y_, y), host().values(y_, y.host),
                    product_tolerance(g_.x.image.elements()));
  }
}

TEST_P(CudaLinear, BackwardDataIsTheHosts) {
  const LinearBackwardData backward{.geometry = g_};
  Operand dy = gradient();
  Operand w = weights();
  Operand dx = tensor(g_.x);
  run_on_host(backward, {&dy, &w, &dx});
  run_first(backward, {&dy, &w, &dx});
  expect_products(values(g_.x, dx), host().values(g_.x, dx.host), product_tolerance(g_.features));
}

TEST_P(CudaLinear, BackwardWeightsIsTheHosts) {
  const LinearBackwardWeights backward{.geometry = g_};
  const ParameterSpec spec = g_.parameters();
  Operand x = input();
  Operand dy = gradient();
  Operand dw = blank_parameters(spec);
  run_on_host(backward, {&x, &dy, &dw});
  run_first(backward, {&x, &dy, &dw});
  // Written as floats, without a rounding.
  host::expect_near(values(spec, dw), host().values(spec, dw.host), product_tolerance(g_.x.batch));
}

TEST_P(CudaLinear, GivesTheSameBitsAgainWhenDeterministic) {
  Operand x = input();
  Operand dy = gradient();
  Operand w = weights();
  const ParameterSpec spec = g_.parameters();
  expect_same_bits(LinearForward{.geometry = g_, .relu = true}, x, w, tensor(y_), tensor(y_));
  expect_same_bits(LinearBackwardData{.geometry = g_}, dy, w, tensor(g_.x), tensor(g_.x));
  expect_same_bits(LinearBackwardWeights{.geometry = g_}, x, dy, blank_parameters(spec),
                   blank_parameters(spec));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaLinear,
    ::testing::Combine(kAllPrecisions,
                       ::testing::Values(LinearGeometry{{5, {6, 3, 3}}, 10, true},
                                         LinearGeometry{{5, {6, 3, 3}}, 10, false},
                                         LinearGeometry{{64, {256, 6, 6}}, 512, true},
                                         LinearGeometry{{1, {2048, 1, 1}}, 1000, true})));

}  // namespace
}  // namespace spillway::cuda
