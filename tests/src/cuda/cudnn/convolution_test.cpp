#include <array>
#include <tuple>

#include "tests/src/cuda/backend_runner.h"

namespace spillway::cuda {
namespace {

struct ConvolutionCase {
  TensorShape x;
  std::size_t out;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;
  nets::Extent dilation = nets::square(1);
  std::size_t groups = 1;

  [[nodiscard]] ConvolutionGeometry geometry() const {
    const auto side = [](std::size_t in, std::size_t k, std::size_t s, std::size_t p,
                         std::size_t d) { return (in + 2 * p - d * (k - 1) - 1) / s + 1; };
    return {.x = x,
            .y = {.batch = x.batch,
                  .image = {.channels = out,
                            .height = side(x.image.height, kernel.height, stride.height,
                                           padding.height, dilation.height),
                            .width = side(x.image.width, kernel.width, stride.width, padding.width,
                                          dilation.width)}},
            .kernel = kernel,
            .stride = stride,
            .padding = padding,
            .bias = bias,
            .dilation = dilation,
            .groups = groups};
  }
};

class CudaConvolution
    : public BackendRunner,
      public ::testing::WithParamInterface<std::tuple<Precision, ConvolutionCase>> {
 protected:
  CudaConvolution() : BackendRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] std::size_t taps() const { return g_.kernel.height * g_.kernel.width; }
  // Weights as kernels read them, so that both sides multiply the same numbers.
  [[nodiscard]] Operand weights() {
    return parameters(g_.parameters(), random(element_count(g_.parameters()), 3));
  }
  [[nodiscard]] Operand input() { return tensor(g_.x, random(g_.x.elements(), 1)); }
  [[nodiscard]] Operand gradient() { return tensor(g_.y, random(g_.y.elements(), 2)); }

  const ConvolutionGeometry g_ = std::get<1>(GetParam()).geometry();
};

TEST_P(CudaConvolution, ForwardIsTheHostsByEveryAlgorithm) {
  for (const bool relu : {false, true}) {
    const ConvolutionForward forward{.geometry = g_, .relu = relu};
    Operand x = input();
    Operand w = weights();
    Operand y = tensor(g_.y);
    run_on_host(forward, {&x, &w, &y});
    for (const AlgorithmInfo& algorithm : backend().algorithms(forward)) {
      SCOPED_TRACE(algorithm.name);
      y.device = DeviceBlock{backend().tensor_bytes(g_.y)};
      run_by(backend(), algorithm, forward, {&x, &w, &y});
      expect_products(values(g_.y, y), host().values(g_.y, y.host),
                      product_tolerance(taps() * g_.x.image.channels / g_.groups));
    }
  }
}

TEST_P(CudaConvolution, BackwardDataIsTheHostsByEveryAlgorithm) {
  const ConvolutionBackwardData backward{.geometry = g_};
  Operand dy = gradient();
  Operand w = weights();
  Operand dx = tensor(g_.x);
  run_on_host(backward, {&dy, &w, &dx});
  for (const AlgorithmInfo& algorithm : backend().algorithms(backward)) {
    SCOPED_TRACE(algorithm.name);
    dx.device = DeviceBlock{backend().tensor_bytes(g_.x)};
    run_by(backend(), algorithm, backward, {&dy, &w, &dx});
    expect_products(values(g_.x, dx), host().values(g_.x, dx.host),
                    product_tolerance(taps() * g_.y.image.channels / g_.groups));
  }
}

TEST_P(CudaConvolution, BackwardWeightsIsTheHostsByEveryAlgorithm) {
  const ConvolutionBackwardWeights backward{.geometry = g_};
  const ParameterSpec spec = g_.parameters();
  Operand x = input();
  Operand dy = gradient();
  Operand dw = blank_parameters(spec);
  run_on_host(backward, {&x, &dy, &dw});
  for (const AlgorithmInfo& algorithm : backend().algorithms(backward)) {
    SCOPED_TRACE(algorithm.name);
    dw.device = DeviceBlock{backend().parameter_bytes(spec)};
    run_by(backend(), algorithm, backward, {&x, &dy, &dw});
    expect_products(values(spec, dw), host().values(spec, dw.host),
                    product_tolerance(g_.y.elements() / g_.y.image.channels));
  }
}

TEST_P(CudaConvolution, GivesTheSameBitsAgainWhenDeterministic) {
  Operand x = input();
  Operand dy = gradient();
  Operand w = weights();
  const ParameterSpec spec = g_.parameters();
  expect_same_bits(ConvolutionForward{.geometry = g_, .relu = true}, x, w, tensor(g_.y),
                   tensor(g_.y));
  expect_same_bits(ConvolutionBackwardData{.geometry = g_}, dy, w, tensor(g_.x), tensor(g_.x));
  // bf16: the copy behind a gradient's floats is nobody's and stays as it was.
  expect_same_bits(ConvolutionBackwardWeights{.geometry = g_}, x, dy, blank_parameters(spec),
                   blank_parameters(spec));
}

constexpr nets::Extent kNone = nets::square(0);
constexpr nets::Extent kOne = nets::square(1);
constexpr nets::Extent kTwo = nets::square(2);
constexpr nets::Extent kThree = nets::square(3);

// A 3x3, a first layer of three channels, a 1x1, strides, channels that are no multiple of 8, a
// kernel and image that are not square, a single pixel.
INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaConvolution,
    ::testing::Combine(
        kAllPrecisions,
        ::testing::Values(ConvolutionCase{{4, {64, 14, 14}}, 32, kThree, kOne, kOne, true},
                          ConvolutionCase{
                              {2, {3, 32, 32}}, 64, nets::square(7), kTwo, kThree, false},
                          ConvolutionCase{{2, {3, 16, 16}}, 16, kThree, kOne, kOne, true},
                          ConvolutionCase{{4, {32, 14, 14}}, 128, kOne, kOne, kNone, false},
                          ConvolutionCase{{4, {32, 14, 14}}, 64, kOne, kTwo, kNone, false},
                          ConvolutionCase{{3, {20, 9, 9}}, 10, kThree, kTwo, kOne, true},
                          ConvolutionCase{{2, {8, 7, 12}}, 12, {1, 5}, {1, 2}, {0, 2}, true},
                          ConvolutionCase{{2, {512, 1, 1}}, 24, kOne, kOne, kNone, true})));

// Two groups, ResNeXt's small ones, depthwise ones with padding; dilation with and without stride.
INSTANTIATE_TEST_SUITE_P(
    GroupsAndDilation, CudaConvolution,
    ::testing::Combine(
        kAllPrecisions,
        ::testing::Values(ConvolutionCase{{2, {64, 14, 14}}, 32, kThree, kOne, kOne, true, kOne, 2},
                          ConvolutionCase{{2, {64, 9, 7}}, 64, kThree, kTwo, kOne, false, kOne, 16},
                          ConvolutionCase{{2, {20, 9, 7}}, 20, kThree, kOne, kOne, true, kOne, 20},
                          ConvolutionCase{{2, {32, 13, 12}}, 16, kThree, kOne, kTwo, true, kTwo},
                          ConvolutionCase{
                              {1, {20, 15, 14}}, 10, {3, 2}, kTwo, kOne, true, {3, 4}})));

}  // namespace
}  // namespace spillway::cuda
