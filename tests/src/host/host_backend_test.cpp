#include "src/host/host_backend.h"

#include <array>
#include <cmath>
#include <thread>

#include "src/host/kernels/kernels.h"
#include "src/ops/weighted_operations.h"
#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/tested_kernels.h"

namespace spillway::host {
namespace {

TEST(HostBackend, DescribesItself) {
  const std::string one = HostBackend{1}.description();
  EXPECT_TRUE(one.starts_with("oneDNN ")) << one;
  EXPECT_TRUE(one.ends_with(", 1 thread")) << one;
  EXPECT_TRUE(HostBackend{2}.description().ends_with(", 2 threads"));
}

TEST(HostBackend, SizesTensorsWithTheirPadding) {
  const HostBackend backend{1};
  const std::size_t padded = backend.layout().padded(20);  // 32 or 24 or 20
  EXPECT_EQ(backend.tensor_bytes({2, {20, 3, 3}}), float_bytes(2 * padded * 9));
  EXPECT_EQ(backend.tensor_bytes({2, {3, 5, 5}}), float_bytes(150));
}

// Activations take half the bytes; parameters have no copies and take as many as in fp32.
TEST(HostBackend, HalvesActivationsInBf16) {
  if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << "no bf16 on this processor";
  const HostBackend fp32{1};
  const HostBackend bf16{1, Precision::kBf16};
  const TensorShape x{2, {20, 3, 3}};
  EXPECT_EQ(bf16.tensor_bytes(x).count() * 2, fp32.tensor_bytes(x).count());
  EXPECT_EQ(bf16.tensor_bytes({2, nets::tokens(7)}), float_bytes(14));
  const AddForward sum{.x = x};
  EXPECT_EQ(bf16.traffic(sum).count() * 2, fp32.traffic(sum).count());
  const UpdateParameters update{.parameters = LinearParameters{4, {16, 1, 1}, true},
                                .options = AdamOptions{}};
  EXPECT_EQ(bf16.traffic(update), fp32.traffic(update));
  EXPECT_EQ(bf16.parameter_bytes(update.parameters), fp32.parameter_bytes(update.parameters));
}

TEST(HostBackend, RefusesAlgorithmsItDoesNotHave) {
  const HostBackend backend{1};
  const ReluForward relu{.x = {1, {16, 2, 2}}};
  EXPECT_EQ(backend.algorithms(relu).size(), 1U);
  EXPECT_THROW(auto kernel = backend.prepare(relu, "fastest"), um::ContractError);
}

// The thread that asks for sizes does not run the kernels and may have a team of another size.
TEST(HostBackend, SizesDoNotDependOnTheThreadThatAsks) {
  const HostBackend backend{3};
  // Each thread gets its own gradient from oneDNN, to be summed later.
  const TensorShape x{4, {16, 14, 14}};
  const ConvolutionBackwardWeights operation{
      .geometry = {x, x, nets::square(3), nets::square(1), nets::square(1), true}};
  um::Bytes elsewhere;
  std::thread([&] {
    start_team(1);
    elsewhere = backend.algorithms(operation).at(0).workspace;
  }).join();
  EXPECT_EQ(backend.algorithms(operation).at(0).workspace, elsewhere);
}

TEST(HostBackend, OffersWinogradAfterDirectWhichNeedsLessWorkspace) {
  const HostBackend backend;
  if (backend.layout().block() != 16) GTEST_SKIP() << "oneDNN has Winograd for AVX-512 only";
  if (onednn_version().starts_with("oneDNN 3")) GTEST_SKIP() << "oneDNN 3 has no Winograd";
  const TensorShape x{1, {64, 28, 28}};
  const ConvolutionGeometry g{x, x, nets::square(3), nets::square(1), nets::square(1), false};
  for (const Operation& operation : {Operation{ConvolutionForward{.geometry = g}},
                                     Operation{ConvolutionBackwardData{.geometry = g}},
                                     Operation{ConvolutionBackwardWeights{.geometry = g}}}) {
    const auto algorithms = backend.algorithms(operation);
    ASSERT_EQ(algorithms.size(), 2U);
    EXPECT_EQ(algorithms[0].name, "direct");
    EXPECT_EQ(algorithms[1].name, "winograd");
    EXPECT_LT(algorithms[0].workspace, algorithms[1].workspace);
  }
}

// No convolution of well-known networks may use oneDNN's reference code, which is hundreds of times
// slower. Images need no backward data.
struct NetworkConvolution {
  nets::Shape image;
  std::size_t out;
  std::size_t kernel;
  std::size_t stride;
};

constexpr auto kConvolutions =
    std::to_array<NetworkConvolution>({// ResNet-50
                                       {{3, 224, 224}, 64, 7, 2},
                                       {{64, 56, 56}, 64, 1, 1},
                                       {{64, 56, 56}, 64, 3, 1},
                                       {{64, 56, 56}, 256, 1, 1},
                                       {{256, 56, 56}, 64, 1, 1},
                                       {{256, 56, 56}, 128, 1, 1},
                                       {{128, 56, 56}, 128, 3, 2},
                                       {{256, 56, 56}, 512, 1, 2},
                                       {{512, 28, 28}, 1024, 1, 2},
                                       {{256, 28, 28}, 256, 3, 2},
                                       {{512, 14, 14}, 512, 3, 2},
                                       {{1024, 14, 14}, 2048, 1, 2},
                                       {{512, 7, 7}, 512, 3, 1},
                                       {{2048, 7, 7}, 512, 1, 1},
                                       // VGG-16
                                       {{3, 224, 224}, 64, 3, 1},
                                       {{64, 224, 224}, 64, 3, 1},
                                       {{64, 112, 112}, 128, 3, 1},
                                       {{256, 56, 56}, 256, 3, 1},
                                       {{256, 28, 28}, 512, 3, 1},
                                       {{512, 14, 14}, 512, 3, 1},
                                       // LeNet-5, and small networks for 32x32 images
                                       {{1, 28, 28}, 6, 5, 1},
                                       {{6, 14, 14}, 16, 5, 1},
                                       {{3, 32, 32}, 16, 3, 1},
                                       {{20, 12, 12}, 50, 5, 1},
                                       {{33, 8, 8}, 10, 3, 2}});

TEST(Networks, NeedNoReferenceCode) {
  const Machine machine{.engine = dnnl::engine(dnnl::engine::kind::cpu, 0),
                        .layout = Layout::of_this_machine(),
                        .threads = 1};
  if (!has_instructions(dnnl::cpu_isa::avx2)) GTEST_SKIP() << "oneDNN is fast from AVX2 on";
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  for (const auto& [image, out, kernel, stride] : kConvolutions) {
    const TensorShape x{.batch = 2, .image = image};
    const nets::Convolution layer{.channels = out,
                                  .kernel = nets::square(kernel),
                                  .stride = nets::square(stride),
                                  .padding = nets::square(kernel / 2)};
    const ConvolutionGeometry geometry = geometry_of(layer, x, output_shape(x, layer));
    std::vector<std::optional<WeightedPrimitive>> primitives{
        make_primitive(machine, ConvolutionForward{.geometry = geometry, .relu = true}, kDirect),
        make_primitive(machine, ConvolutionBackwardWeights{.geometry = geometry}, kDirect)};
    if (image.channels > 3) {
      primitives.push_back(
          make_primitive(machine, ConvolutionBackwardData{.geometry = geometry}, kDirect));
    }
    for (const auto& weighted : primitives) {
      ASSERT_TRUE(weighted.has_value());
      const std::string name = weighted->primitive.impl_info_str();
      EXPECT_EQ(name.find("ref"), std::string::npos)
          << name << " for " << image.channels << " to " << out;
    }
  }
}

/// Returns the lines in which oneDNN reports what it runs in `work`.
template <class Work>
std::string said_of(const Work& work) {
  EXPECT_EQ(dnnl::set_verbose(1), dnnl::status::success);
  testing::internal::CaptureStdout();
  work();
  dnnl::set_verbose(0);
  return testing::internal::GetCapturedStdout();
}

// A convolution for which oneDNN only has its reference code, at least on some instruction set.
struct RareConvolution {
  TensorShape x;
  nets::Layer layer;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const RareConvolution& c, std::ostream* out) {
  *out << to_string(c.x.image) << ", " << nets::to_string(c.layer);
}

class RareConvolutions
    : public KernelRunner,
      public testing::WithParamInterface<std::tuple<Precision, RareConvolution>> {
 protected:
  RareConvolutions() : KernelRunner{is_there() ? std::get<0>(GetParam()) : Precision::kFp32} {}
  void SetUp() override {
    if (!is_there()) GTEST_SKIP() << "no bf16 on this processor";
  }

  template <class Geometry>
  void run_all(const Geometry& g) const {
    Block x = tensor(g.x, Values(g.x.elements(), 1.0));
    Block y = tensor(g.y, Values(g.y.elements(), 1.0));
    Block w = parameters(g.parameters(), Values(element_count(g.parameters()), 1.0));
    run(WeightedForward<Geometry>{.geometry = g}, {&x, &w, &y});
    run(WeightedBackwardData<Geometry>{.geometry = g}, {&y, &w, &x});
    run(WeightedBackwardWeights<Geometry>{.geometry = g}, {&x, &y, &w});
  }

 private:
  static bool is_there() {
    return std::get<0>(GetParam()) == Precision::kFp32 || bf16_support() != Bf16Support::kNone;
  }
};

// Reference code is hundreds of times slower than the rest.
TEST_P(RareConvolutions, NeverRunByReferenceCode) {
  const auto& [x, layer] = std::get<1>(GetParam());
  const TensorShape y = output_shape(x, layer);
  const std::string plain = said_of([&] {
    const TensorShape image{1, {16, 8, 8}};
    run_all(geometry_of(nets::Convolution{.channels = 16}, image, image));
  });
  ASSERT_NE(plain.find(",convolution,"), std::string::npos) << "oneDNN does not say what it runs";
  const std::string said = said_of([&, &x = x, &layer = layer] {
    if (const auto* const convolution = std::get_if<nets::Convolution>(&layer)) {
      run_all(geometry_of(*convolution, x, y));
    } else {
      run_all(geometry_of(std::get<nets::TransposedConvolution>(layer), x, y));
    }
  });
  EXPECT_EQ(said.find(",convolution,ref"), std::string::npos) << said;
}

constexpr nets::Extent kOne = nets::square(1);
constexpr nets::Extent kTwo = nets::square(2);
constexpr nets::Extent kThree = nets::square(3);
constexpr nets::Extent kFour = nets::square(4);

using nets::Convolution;
using nets::TransposedConvolution;

// Dilated layers with a stride or in a small image; groups that do and do not fill blocks of
// channels; depthwise layers that are large, dilated or have two outputs per channel; images as
// input and output; patches of channels or of pixels; transposed layers.
INSTANTIATE_TEST_SUITE_P(
    Shapes, RareConvolutions,
    testing::Combine(
        testing::Values(Precision::kFp32, Precision::kBf16),
        testing::Values(
            RareConvolution{{2, {17, 12, 12}}, Convolution{17, kThree, kTwo, kFour, true, kFour}},
            RareConvolution{{2, {32, 13, 13}}, Convolution{32, kThree, kTwo, kTwo, true, kTwo}},
            RareConvolution{{1, {16, 8, 8}}, Convolution{16, kThree, kOne, kFour, true, kFour}},
            RareConvolution{{2, {12, 6, 6}}, Convolution{8, {1, 5}, kOne, {0, 2}, false, kOne, 4}},
            RareConvolution{{2, {32, 6, 6}}, Convolution{32, kThree, kOne, kOne, true, kOne, 8}},
            RareConvolution{{2, {64, 6, 6}}, Convolution{64, kThree, kTwo, kTwo, true, kTwo, 2}},
            RareConvolution{{2, {32, 8, 8}},
                            Convolution{32, nets::square(7), kOne, kThree, true, kOne, 32}},
            RareConvolution{{2, {20, 8, 8}}, Convolution{20, kThree, kOne, kTwo, true, kTwo, 20}},
            RareConvolution{{2, {16, 6, 6}}, Convolution{32, kThree, kOne, kOne, true, kOne, 16}},
            RareConvolution{{2, {1, 8, 8}}, Convolution{16, kThree, kOne, kOne}},
            RareConvolution{{2, {64, 6, 6}}, Convolution{1, kThree, kOne, kOne}},
            RareConvolution{{2, {3, 32, 32}}, Convolution{32, nets::square(16), nets::square(16)}},
            RareConvolution{{1, {16, 32, 32}}, Convolution{16, kThree, kThree}},
            RareConvolution{{1, {5, 3, 4}},
                            TransposedConvolution{5, nets::square(16), nets::square(8), kFour}},
            RareConvolution{{1, {6, 3, 2}},
                            TransposedConvolution{9, kThree, kTwo, kOne, true, kOne, 3}})));

// Tests the loss over a vocabulary with logits computed in several chunks.

constexpr std::size_t kTokens = 2100;
constexpr std::size_t kVocabulary = 16'384;
constexpr std::size_t kChannels = 8;

class VocabularyChunks : public host_tested::KernelRunner {
 protected:
  static constexpr VocabularyGeometry kGeometry{
      .x = {.batch = 1, .image = nets::sequence(kTokens, kChannels)},
      .vocabulary = kVocabulary,
      .bias = true};

  // Returns channel c of token t; tensors store channels first.
  [[nodiscard]] double x_at(std::size_t t, std::size_t c) const { return x_[c * kTokens + t]; }

  // Computes the loss and its gradients by definition.
  void differentiate() {
    std::vector<double> row(kVocabulary);
    for (std::size_t t = 0; t < kTokens; ++t) {
      double sum = 0;
      for (std::size_t v = 0; v < kVocabulary; ++v) {
        double logit = bias_[v];
        for (std::size_t c = 0; c < kChannels; ++c) logit += x_at(t, c) * table_[v * kChannels + c];
        row[v] = std::exp(logit);
        sum += row[v];
      }
      const auto label = static_cast<std::size_t>(labels_[t]);
      loss_ += std::log(sum / row[label]) / kTokens;
      for (std::size_t v = 0; v < kVocabulary; ++v) {
        const double slope = (row[v] / sum - (v == label ? 1 : 0)) / kTokens;
        dbias_[v] += slope;
        for (std::size_t c = 0; c < kChannels; ++c) {
          dtable_[v * kChannels + c] += slope * x_at(t, c);
          dx_[c * kTokens + t] += slope * table_[v * kChannels + c];
        }
      }
    }
  }

  // Compares by the norm of the difference, relative to the norm of the expected numbers.
  static void expect_alike(const Values& numbers, const Values& expected, const char* what) {
    ASSERT_EQ(numbers.size(), expected.size());
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      difference += std::pow(numbers[i] - expected[i], 2);
      norm += std::pow(expected[i], 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), test::is_bf16() ? 5e-3 : 1e-5) << what;
  }

  const Values x_ = test::random_values(kTokens * kChannels, 1);
  const Values table_ = test::random_values(kVocabulary * kChannels, 2);
  const Values bias_ = test::random_values(kVocabulary, 3);
  const std::vector<std::int32_t> labels_ = [] {
    std::vector<std::int32_t> labels(kTokens);
    for (std::size_t t = 0; t < kTokens; ++t) {
      labels[t] = static_cast<std::int32_t>(t * 7919 % kVocabulary);
    }
    return labels;
  }();
  double loss_ = 0;
  Values dx_ = Values(kTokens * kChannels);
  Values dtable_ = Values(kVocabulary * kChannels);
  Values dbias_ = Values(kVocabulary);
};

// Three chunks: the first, the middle and the last.
TEST_F(VocabularyChunks, AddUpToTheWholeLoss) {
  static_assert(kTokens * kVocabulary > 2 * kVocabularyChunk);
  static_assert(kTokens * kVocabulary < 3 * kVocabularyChunk && kTokens % 3 == 0);
  const VocabularyLossTrain op{.geometry = kGeometry};
  Block x = tensor(kGeometry.x, x_);
  Block table = parameters(kGeometry.table(), table_);
  Block bias = parameters(kGeometry.bias_parameters(), bias_);
  Block labels = numbers(labels_);
  Block result{um::Bytes{2 * sizeof(float)}};
  Block dx = tensor(kGeometry.x);
  Block dtable = parameters(kGeometry.table());
  Block dbias = parameters(kGeometry.bias_parameters());
  run(op, {&x, &table, &labels, &bias, &result, &dx, &dtable, &dbias});
  differentiate();
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), loss_, test::is_bf16() ? 0.02 : 1e-4);
  expect_alike(values(kGeometry.x, dx), dx_, "dx");
  expect_alike(values(kGeometry.table(), dtable), dtable_, "dtable");
  expect_alike(values(kGeometry.bias_parameters(), dbias), dbias_, "dbias");
}

}  // namespace
}  // namespace spillway::host
