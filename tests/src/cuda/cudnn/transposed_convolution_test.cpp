#include <tuple>

#include "tests/src/cuda/backend_runner.h"

namespace spillway::cuda {
namespace {

struct TransposedCase {
  TensorShape x;
  nets::TransposedConvolution layer;

  [[nodiscard]] TransposedConvolutionGeometry geometry() const {
    const auto side = [](std::size_t n, std::size_t s, std::size_t p, std::size_t d, std::size_t k,
                         std::size_t more) { return (n - 1) * s + d * (k - 1) + 1 + more - 2 * p; };
    const auto& l = layer;
    const std::size_t height = side(x.image.height, l.stride.height, l.padding.height,
                                    l.dilation.height, l.kernel.height, l.output_padding.height);
    const std::size_t width = side(x.image.width, l.stride.width, l.padding.width, l.dilation.width,
                                   l.kernel.width, l.output_padding.width);
    return {.x = x,
            .y = {x.batch, {l.channels, height, width}},
            .kernel = l.kernel,
            .stride = l.stride,
            .padding = l.padding,
            .bias = l.bias,
            .dilation = l.dilation,
            .groups = l.groups};
  }
};

class CudaTransposedConvolution
    : public BackendRunner,
      public ::testing::WithParamInterface<std::tuple<Precision, TransposedCase>> {
 protected:
  CudaTransposedConvolution() : BackendRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] std::size_t taps() const { return g_.kernel.height * g_.kernel.width; }
  // Weights as kernels read them, so that both sides multiply the same numbers.
  [[nodiscard]] Operand weights() {
    return parameters(g_.parameters(), random(element_count(g_.parameters()), 3));
  }
  [[nodiscard]] Operand input() { return tensor(g_.x, random(g_.x.elements(), 1)); }
  [[nodiscard]] Operand gradient() { return tensor(g_.y, random(g_.y.elements(), 2)); }

  const TransposedConvolutionGeometry g_ = std::get<1>(GetParam()).geometry();
};

TEST_P(CudaTransposedConvolution, ForwardIsTheHostsByEveryAlgorithm) {
  for (const bool relu : {false, true}) {
    const TransposedConvolutionForward forward{.geometry = g_, .relu = relu};
    Operand x = input();
    Operand w = weights();
    Operand y = tensor(g_.y);
    run_on_host(forward, {&x, &w, &y});
    for (const AlgorithmInfo& algorithm : backend().algorithms(forward)) {
      SCOPED_TRACE(algorithm.name);
      y.device = DeviceBlock{backend().tensor_bytes(g_.y)};
      run_by(backend(), algorithm, forward, {&x, &w, &y});
      expect_products(values(g_.y, y), host().values(g_.y, y.host),
                      product_tolerance(taps() * g_.x.image.channels));
    }
  }
}

TEST_P(CudaTransposedConvolution, BackwardDataIsTheHostsByEveryAlgorithm) {
  const TransposedConvolutionBackwardData backward{.geometry = g_};
  Operand dy = gradient();
  Operand w = weights();
  Operand dx = tensor(g_.x);
  run_on_host(backward, {&dy, &w, &dx});
  for (const AlgorithmInfo& algorithm : backend().algorithms(backward)) {
    SCOPED_TRACE(algorithm.name);
    dx.device = DeviceBlock{backend().tensor_bytes(g_.x)};
    run_by(backend(), algorithm, backward, {&dy, &w, &dx});
    expect_products(values(g_.x, dx), host().values(g_.x, dx.host),
                    product_tolerance(taps() * g_.y.image.channels));
  }
}

TEST_P(CudaTransposedConvolution, BackwardWeightsIsTheHostsByEveryAlgorithm) {
  const TransposedConvolutionBackwardWeights backward{.geometry = g_};
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

constexpr nets::Extent kSquare1 = nets::square(1);
constexpr nets::Extent kSquare2 = nets::square(2);
constexpr nets::Extent kSquare3 = nets::square(3);

// FCN's doubling; nothing square, with the stride's rest; dilated; groups; channels that are no
// multiple of 8.
INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaTransposedConvolution,
    ::testing::Combine(
        kAllPrecisions,
        ::testing::Values(
            TransposedCase{{2, {21, 5, 6}}, {21, nets::square(4), kSquare2, {0, 0}, false}},
            TransposedCase{{1, {4, 3, 4}}, {7, {3, 4}, {2, 3}, {1, 2}, true, kSquare1, 1, {1, 2}}},
            TransposedCase{{2, {16, 4, 3}}, {8, {2, 3}, {2, 1}, kSquare1, true, {3, 2}}},
            TransposedCase{{2, {32, 6, 5}},
                           {16, kSquare3, kSquare2, kSquare1, true, kSquare1, 2}})));

}  // namespace
}  // namespace spillway::cuda
