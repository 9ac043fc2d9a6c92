#include "src/ops/weighted_operations.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <variant>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

struct WeightedCase {
  TensorShape x;
  nets::Layer layer;  // a layer with weights
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const WeightedCase& c, std::ostream* out) {
  *out << c.x.batch << " x " << to_string(c.x.image) << ", " << nets::to_string(c.layer);
}

using Geometry = std::variant<ConvolutionGeometry, TransposedConvolutionGeometry, LinearGeometry>;

Geometry geometry(const WeightedCase& c) {
  if (const auto* const linear = std::get_if<nets::Linear>(&c.layer)) {
    return LinearGeometry{.x = c.x, .features = linear->features, .bias = linear->bias};
  }
  const TensorShape y = output_shape(c.x, c.layer);
  if (const auto* const convolution = std::get_if<nets::Convolution>(&c.layer)) {
    return geometry_of(*convolution, c.x, y);
  }
  return geometry_of(std::get<nets::TransposedConvolution>(c.layer), c.x, y);
}

class WeightedLayer : public KernelRunner, public ::testing::WithParamInterface<WeightedCase> {
 protected:
  // Calls check(geometry).
  template <class Check>
  void with_geometry(const Check& check) const {
    std::visit(check, geometry_);
  }
  [[nodiscard]] bool is_linear() const { return std::holds_alternative<LinearGeometry>(geometry_); }
  // Number of terms in a sum of y, of dx and of a weight's gradient.
  [[nodiscard]] std::size_t forward_terms() const { return weights_ / y_.image.channels; }
  [[nodiscard]] std::size_t data_terms() const {
    return weights_ / (is_linear() ? x_.image.elements() : x_.image.channels);
  }
  [[nodiscard]] std::size_t gradient_terms() const { return y_.elements() / y_.image.channels; }

  [[nodiscard]] Block input() { return tensor(x_, values_of_x_); }
  [[nodiscard]] Block gradient() { return tensor(y_, values_of_dy_); }
  [[nodiscard]] Block weights() { return parameters(spec_, values_of_w_); }
  // Blocks for a kernel to write.
  [[nodiscard]] Block fresh(const TensorShape& shape) { return tensor(shape); }
  [[nodiscard]] Block fresh(const ParameterSpec& spec) { return parameters(spec); }

  // Runs every algorithm. The Winograd transforms F(4,3) multiply by up to 8 and sum rows of such
  // numbers, once per direction. Lavin and Gray ("Fast algorithms for convolutional neural
  // networks", 2016) measured about twenty times the error of a direct convolution. cuDNN's engine
  // 17 errs more than a sum, too: by 1.08 times the tolerance in fp32 on an H200.
  template <class Shape>
  void expect_sums(const Operation& operation, Block a, Block b, const Shape& shape,
                   const Values& expected, std::size_t terms) {
    const std::vector<AlgorithmInfo> algorithms = backend().algorithms(operation);
    ASSERT_FALSE(algorithms.empty());
    if (!kIsCuda && !is_linear()) {
      EXPECT_EQ(algorithms[0].name, "direct");
    }
    for (const AlgorithmInfo& algorithm : algorithms) {
      SCOPED_TRACE(algorithm.name);
      Block result = fresh(shape);
      run_with(algorithm.name, operation, {&a, &b, &result});
      const int factor = algorithm.name == "winograd"              ? 20
                         : algorithm.name.starts_with("engine17_") ? 2
                                                                   : 1;
      const double tolerance = factor * product_tolerance(terms);
      if (std::holds_alternative<LinearBackwardWeights>(operation)) {  // sums are written as floats
        host::expect_near(values(shape, result), expected, tolerance);
      } else {
        expect_products(values(shape, result), expected, tolerance);
      }
    }
  }

  const Geometry geometry_ = geometry(GetParam());
  const TensorShape x_ = GetParam().x;
  const TensorShape y_ = output_shape(x_, GetParam().layer);
  const bool bias_ = std::visit([](const auto& g) { return g.bias; }, geometry_);
  const ParameterSpec spec_ =
      std::visit([](const auto& g) { return ParameterSpec{g.parameters()}; }, geometry_);
  const std::size_t weights_ = element_count(spec_) - (bias_ ? y_.image.channels : 0);
  // Values are rounded to the kernels' elements, so that kernel and definition multiply the same
  // numbers.
  const Values values_of_x_ = random_values(x_.elements(), 1);
  const Values values_of_dy_ = random_values(y_.elements(), 2);
  const Values values_of_w_ = random_values(element_count(spec_), 3);
};

TEST_P(WeightedLayer, ForwardIsTheSumOfItsProducts) {
  with_geometry([&]<class G>(const G& g) {
    const Values sums = naive_sums(g, values_of_x_, values_of_w_);
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(relu ? "relu" : "no relu");
      expect_sums(WeightedForward<G>{.geometry = g, .relu = relu}, input(), weights(), y_,
                  relu ? naive_relu(sums) : sums, forward_terms());
    }
  });
}

TEST_P(WeightedLayer, BackwardDataIsTheTransposedSum) {
  with_geometry([&]<class G>(const G& g) {
    Values expected(x_.elements(), 0.0);
    for_each_product(g, [&](std::size_t to, std::size_t from, std::size_t weight) {
      expected[from] += values_of_dy_[to] * values_of_w_[weight];
    });
    expect_sums(WeightedBackwardData<G>{.geometry = g}, gradient(), weights(), x_, expected,
                data_terms());
  });
}

TEST_P(WeightedLayer, BackwardWeightsSumsOverBatchAndPixels) {
  with_geometry([&]<class G>(const G& g) {
    Values expected(values_of_w_.size(), 0.0);
    for_each_product(g, [&](std::size_t to, std::size_t from, std::size_t weight) {
      expected[weight] += values_of_dy_[to] * values_of_x_[from];
    });
    for (std::size_t i = 0; bias_ && i < y_.elements(); ++i) {
      expected[weights_ + channel_of(y_, i)] += values_of_dy_[i];
    }
    expect_sums(WeightedBackwardWeights<G>{.geometry = g}, input(), gradient(), spec_, expected,
                gradient_terms());
  });
}

// A NaN must show in the loss. On a GPU our own fused ReLU keeps it, too; oneDNN's makes it zero.
TEST_P(WeightedLayer, ForwardLetsNansThrough) {
  if (kIsCuda && !is_linear()) GTEST_SKIP() << "cuDNN promises nothing about NaNs";
  with_geometry([&]<class G>(const G& g) {
    Values numbers = values_of_w_;
    numbers[weights_ / 2] = std::numeric_limits<double>::quiet_NaN();
    const Values sums = naive_sums(g, values_of_x_, numbers);
    Block x = input();
    Block w = parameters(spec_, numbers);
    for (const bool relu : {false, kIsCuda}) {
      const WeightedForward<G> forward{.geometry = g, .relu = relu};
      for (const AlgorithmInfo& algorithm : backend().algorithms(forward)) {
        SCOPED_TRACE(algorithm.name + (relu ? " with ReLU" : ""));
        Block y = fresh(y_);
        run_with(algorithm.name, forward, {&x, &w, &y});
        const Values results = values(y_, y);
        std::size_t lost = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
          lost += std::isnan(sums[i]) && !std::isnan(results[i]) ? 1 : 0;
        }
        EXPECT_EQ(lost, 0);
      }
    }
  });
}

// In bfloat16, the memory for a copy after a gradient's floats is unused and must not change.
TEST_P(WeightedLayer, GivesTheSameBitsAgain) {
  with_geometry([&]<class G>(const G& g) {
    Block x = input();
    Block dy = gradient();
    Block w = weights();
    expect_same_bits(WeightedForward<G>{.geometry = g, .relu = true}, x, w, fresh(y_), fresh(y_));
    expect_same_bits(WeightedBackwardData<G>{.geometry = g}, dy, w, fresh(x_), fresh(x_));
    expect_same_bits(WeightedBackwardWeights<G>{.geometry = g}, x, dy, fresh(spec_), fresh(spec_));
  });
}

// Three parts; the last one has the biases. A matrix of another width may change the order of the
// sums over the batch.
TEST_P(WeightedLayer, BackwardWeightsInPartsAreThoseOfTheWhole) {
  const auto* const g = std::get_if<LinearGeometry>(&geometry_);
  if (g == nullptr || backend().parameter_parts(spec_, um::Bytes{1}) < 3) return;
  Block x = input();
  Block dy = gradient();
  Block whole = fresh(spec_);
  const auto run_first = [&](const LinearBackwardWeights& operation, Block& result) {
    run_with(backend().algorithms(operation).front().name, operation, {&x, &dy, &result});
  };
  run_first({.geometry = *g}, whole);
  std::vector<Block> dw = parts(spec_, 3);
  for (std::size_t i = 0; i < dw.size(); ++i) {
    run_first({.geometry = *g, .part = {.index = i, .count = dw.size()}}, dw[i]);
  }
  host::expect_near(values(spec_, dw), values(spec_, whole), product_tolerance(x_.batch));
}

constexpr nets::Extent kNone = nets::square(0);
constexpr nets::Extent kOne = nets::square(1);
constexpr nets::Extent kTwo = nets::square(2);
constexpr nets::Extent kThree = nets::square(3);

using nets::Convolution;
using nets::Linear;
using nets::TransposedConvolution;

// Host: first layers, LeNet's odd channel counts, non-square shapes, Winograd, Inception. CUDA: a
// first layer with three channels, channel counts that are not multiples of 8, a single pixel.
INSTANTIATE_TEST_SUITE_P(
    Convolution, WeightedLayer,
    ::testing::ValuesIn(of_backend<WeightedCase>(
        {{{1, {3, 9, 8}}, Convolution{10, kThree, kOne, kOne}},
         {{3, {3, 15, 13}}, Convolution{20, nets::square(7), kTwo, kThree, false}},
         {{3, {1, 12, 12}}, Convolution{6, nets::square(5), kOne, kTwo}},
         {{2, {3, 33, 35}}, Convolution{20, nets::square(16), nets::square(16)}},  // patches
         {{1, {3, 20, 17}},
          Convolution{33, nets::square(15), nets::square(5), nets::square(3), false}},
         {{2, {3, 20, 17}}, Convolution{10, kThree, kOne, nets::square(100)}},  // as in FCN
         {{1, {6, 7, 5}}, Convolution{16, kThree, kOne, kOne}},
         {{3, {10, 6, 6}}, Convolution{33, kOne, kOne, kNone, false}},
         {{3, {20, 7, 6}}, Convolution{33, kOne, kTwo}},
         {{3, {16, 8, 9}}, Convolution{32, kThree, kTwo, kOne}},
         {{1, {33, 6, 7}}, Convolution{20, {3, 2}, {2, 1}, {1, 0}}},
         {{2, {5, 5, 4}}, Convolution{6, {3, 2}, kTwo, kOne}},
         {{3, {16, 5, 5}}, Convolution{24, nets::square(5)}},  // result is one pixel
         {{3, {32, 13, 14}}, Convolution{48, kThree, kOne, kOne}},
         {{1, {64, 8, 8}}, Convolution{64, kThree, kOne, kOne, false}},
         {{2, {32, 9, 8}}, Convolution{48, {1, 7}, kOne, {0, 3}, false}},
         {{2, {32, 9, 8}}, Convolution{20, {7, 1}, kOne, {3, 0}, false}},
         {{1, {16, 8, 8}}, Convolution{32, {1, 3}, kOne, {0, 1}, false}},
         {{1, {48, 7, 8}}, Convolution{64, nets::square(5), kOne, kTwo, false}},
         {{1, {3, 27, 23}}, Convolution{96, nets::square(11), nets::square(4)}},
         {{1, {20, 5, 6}}, Convolution{3, kThree, kOne, kOne}},    // result is an image
         {{2, {64, 30, 31}}, Convolution{1, kThree, kOne, kOne}},  // several products
         {{3, {2, 5, 6}}, Convolution{3, kThree, kOne, kOne}}},
        {{{4, {64, 14, 14}}, Convolution{32, kThree, kOne, kOne}},
         {{2, {3, 32, 32}}, Convolution{64, nets::square(7), kTwo, kThree, false}},
         {{2, {3, 16, 16}}, Convolution{16, kThree, kOne, kOne}},
         {{4, {32, 14, 14}}, Convolution{128, kOne, kOne, kNone, false}},
         {{4, {32, 14, 14}}, Convolution{64, kOne, kTwo, kNone, false}},
         {{3, {20, 9, 9}}, Convolution{10, kThree, kTwo, kOne}},
         {{2, {8, 7, 12}}, Convolution{12, {1, 5}, {1, 2}, {0, 2}}},
         {{2, {512, 1, 1}}, Convolution{24}}})));

// Two groups as in AlexNet, small groups as in ResNeXt, depthwise layers with one and three outputs
// per channel, groups that split blocks of channels, depthwise layers with gaps from their stride.
INSTANTIATE_TEST_SUITE_P(
    Groups, WeightedLayer,
    ::testing::ValuesIn(of_backend<WeightedCase>(
        {{{2, {64, 7, 9}}, Convolution{32, kThree, kOne, kOne, true, kOne, 2}},
         {{1, {32, 6, 5}}, Convolution{32, kThree, kTwo, kOne, false, kOne, 8}},
         {{2, {20, 7, 5}}, Convolution{20, kThree, kOne, kOne, true, kOne, 20}},
         {{1, {32, 9, 7}}, Convolution{32, {3, 5}, {2, 1}, {1, 2}, true, kOne, 32}},
         {{3, {3, 6, 7}}, Convolution{9, kThree, kOne, kOne, true, kOne, 3}},
         {{2, {20, 5, 6}}, Convolution{30, {2, 3}, {1, 2}, {0, 1}, true, {2, 1}, 10}},
         {{2, {20, 9, 8}}, Convolution{20, {2, 1}, kThree, kOne, true, kOne, 20}}},
        {{{2, {64, 14, 14}}, Convolution{32, kThree, kOne, kOne, true, kOne, 2}},
         {{2, {64, 9, 7}}, Convolution{64, kThree, kTwo, kOne, false, kOne, 16}},
         {{2, {20, 9, 7}}, Convolution{20, kThree, kOne, kOne, true, kOne, 20}}})));

INSTANTIATE_TEST_SUITE_P(
    Dilation, WeightedLayer,
    ::testing::ValuesIn(of_backend<WeightedCase>(
        {{{2, {32, 13, 11}}, Convolution{48, kThree, kOne, kTwo, true, kTwo}},
         {{1, {3, 15, 14}}, Convolution{20, kThree, kTwo, kOne, true, {3, 2}}},
         {{2, {20, 11, 13}}, Convolution{33, {3, 2}, kOne, {4, 0}, false, {4, 5}}},
         {{1, {16, 9, 8}}, Convolution{16, kThree, {1, 2}, kOne, true, {1, 2}}},
         {{2, {6, 7, 5}}, Convolution{9, {3, 2}, {2, 1}, {2, 1}, true, {2, 3}, 3}},
         {{2, {20, 9, 8}}, Convolution{20, {3, 5}, {2, 1}, {1, 5}, true, {2, 3}, 20}},
         {{2, {16, 6, 7}}, Convolution{16, kThree, kOne, {4, 9}, false, {4, 9}, 16}},
         {{3, {17, 9, 10}}, Convolution{20, kThree, {2, 3}, {9, 1}, true, {4, 2}}}},
        {{{2, {32, 13, 12}}, Convolution{16, kThree, kOne, kTwo, true, kTwo}},
         {{1, {20, 15, 14}}, Convolution{10, {3, 2}, kTwo, kOne, true, {3, 4}}}})));

// Doubling as in FCN; kernels too large for oneDNN's fast implementations, with and without
// padding; a kernel with gaps; non-square shapes with a remainder of the stride; dilation; images
// as input and as output; groups that do and do not fill blocks; a 3x3 kernel with Winograd; one
// pixel.
INSTANTIATE_TEST_SUITE_P(
    TransposedConvolution, WeightedLayer,
    ::testing::ValuesIn(of_backend<WeightedCase>(
        {{{2, {5, 3, 4}}, TransposedConvolution{5, nets::square(4), kTwo, {0, 0}, false}},
         {{1, {2, 2, 3}}, TransposedConvolution{2, nets::square(16), nets::square(8), {3, 0}}},
         {{2, {5, 2, 1}},
          TransposedConvolution{4, {34, 16}, {17, 8}, {0, 5}, true, kOne, 1, {2, 3}}},
         {{1, {6, 3, 2}}, TransposedConvolution{10, kTwo, kThree}},
         {{1, {4, 3, 4}}, TransposedConvolution{7, {3, 4}, {2, 3}, {1, 2}, true, kOne, 1, {1, 2}}},
         {{1, {3, 4, 3}}, TransposedConvolution{4, {2, 3}, {2, 1}, kOne, true, {3, 2}}},
         {{2, {5, 2, 3}}, TransposedConvolution{3, kThree, kTwo, kOne, true, kOne, 1, kOne}},
         {{1, {32, 2, 2}}, TransposedConvolution{32, kTwo, kTwo, {0, 0}, true, kOne, 2}},
         {{1, {6, 3, 2}}, TransposedConvolution{9, kThree, kTwo, kOne, true, kOne, 3, {1, 0}}},
         {{1, {16, 4, 5}}, TransposedConvolution{32, kThree, kOne, kOne}},
         {{2, {3, 1, 1}}, TransposedConvolution{5, {4, 3}, kOne}}},
        {{{2, {21, 5, 6}}, TransposedConvolution{21, nets::square(4), kTwo, {0, 0}, false}},
         {{1, {4, 3, 4}}, TransposedConvolution{7, {3, 4}, {2, 3}, {1, 2}, true, kOne, 1, {1, 2}}},
         {{2, {16, 4, 3}}, TransposedConvolution{8, {2, 3}, {2, 1}, kOne, true, {3, 2}}},
         {{2, {32, 6, 5}}, TransposedConvolution{16, kThree, kTwo, kOne, true, kOne, 2}}})));

// Images with and without padding channels, dense images, and dense logits.
INSTANTIATE_TEST_SUITE_P(
    Linear, WeightedLayer,
    ::testing::ValuesIn(of_backend<WeightedCase>({{{3, {20, 1, 1}}, Linear{10}},
                                                  {{1, {16, 3, 2}}, Linear{33}},
                                                  {{3, {6, 2, 3}}, Linear{16, false}},
                                                  {{3, {1, 4, 4}}, Linear{6}},
                                                  {{3, {33, 1, 1}}, Linear{2}},
                                                  {{5, {20, 3, 3}}, Linear{40}},
                                                  {{40, {12, 4, 4}}, Linear{7, false}},
                                                  {{1, {3, 1, 1}}, Linear{3, false}}},
                                                 {{{5, {6, 3, 3}}, Linear{10}},
                                                  {{5, {6, 3, 3}}, Linear{10, false}},
                                                  {{64, {256, 6, 6}}, Linear{512}},
                                                  {{1, {2048, 1, 1}}, Linear{1000}}})));

}  // namespace
}  // namespace spillway::test
