// Compares each layer's kernels with PyTorch's results, forward and backward, on odd sizes.

#include "tests/golden/layer_golden.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "src/ops/weighted_operations.h"
#include "tests/src/host/tested_kernels.h"

namespace spillway::test {

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const LayerGolden& golden, std::ostream* out) { *out << golden.name; }

}  // namespace spillway::test

namespace spillway::host {
namespace {

using test::LayerGolden;

// The base of tests that compare a layer's kernels with PyTorch's numbers.
class GoldenLayerRunner : public host_tested::KernelRunner,
                          public testing::WithParamInterface<test::LayerGolden> {
 protected:
  [[nodiscard]] Block input(std::size_t number) const {
    const TensorShape& shape = g_.x[number];
    return tensor(shape, g_.drawn("x" + std::to_string(number + 1), shape.elements()));
  }
  [[nodiscard]] Block output_gradient() const {
    return tensor(g_.y, g_.drawn("dy", g_.y.elements()));
  }
  // Returns the gradient that passes a ReLU with output y.
  [[nodiscard]] Block masked_output_gradient(Block& y) const {
    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    run(ReluBackward{.x = g_.y}, {&y, &dy, &dx});
    return dx;
  }
  void expect_golden(const std::string& part, const Values& numbers,
                     const std::string& algorithm = "default") {
    const Values& wanted = g_.results.at(part);
    ASSERT_EQ(numbers.size(), wanted.size()) << part;
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      difference += std::pow(numbers[i] - wanted[i], 2);
      norm += std::pow(wanted[i], 2);
    }
    const double error = std::sqrt(difference / norm);
    EXPECT_LE(error, tolerance_of(algorithm)) << part << ", " << algorithm;
    RecordProperty(part + "_" + algorithm, std::to_string(error * 1e9) + "e-9");
  }

  const test::LayerGolden& g_ = GetParam();

 private:
  // Largest distance of a result from PyTorch's in 64 bits: the norm of the difference, relative to
  // the norm of the result. (Measured on one machine: at most 3e-7, the same as PyTorch in 32
  // bits.)
  static constexpr double kTolerance = 1e-5;
  // The longest sums have 144 products. Their 32-bit roundings of 2^-24 add up to about sqrt(144) *
  // 2^-24 = 7e-7. The transforms of a Winograd convolution F(4,3) lose about twenty times as much
  // as direct sums (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016).
  // (Measured on one machine: 4e-7.)
  static constexpr double kWinogradTolerance = 1.4e-5;
  // A number of a bfloat16 tensor errs by up to 2^-9 of its value, with about half of that as root
  // mean square. Errors of inputs, intermediate results and the result add up to 2^-8, and more if
  // gradients are differences. (Measured on one machine: 3.9e-3.)
  static constexpr double kBf16Tolerance = 5e-3;

  static double tolerance_of(const std::string& algorithm) {
    if (test::is_bf16()) return kBf16Tolerance;
    return algorithm == "winograd" ? kWinogradTolerance : kTolerance;
  }
};

// The operands of a backward operation before dy, what forward saved, and dx.
struct Reads {
  bool x = false;
  bool y = false;
};

// Checks each kind of image layer; some of them occur in networks of tokens, too.
class GoldenImageLayers : public GoldenLayerRunner {
 protected:
  void check(const nets::Convolution& layer) { check_weighted(geometry_of(layer, g_.x[0], g_.y)); }
  void check(const nets::TransposedConvolution& layer) {
    check_weighted(geometry_of(layer, g_.x[0], g_.y));
  }
  void check(const nets::Linear& layer) {
    const bool is_sequence = g_.x[0].image.form == nets::Form::kSequence;
    check_weighted(LinearGeometry{.x = is_sequence ? rows_of(g_.x[0]) : g_.x[0],
                                  .features = layer.features,
                                  .bias = layer.bias});
  }
  void check(const nets::BatchNorm& layer) {
    const BatchNormParameters spec{.channels = g_.y.image.channels};
    const BatchNormStatistics statistics{.channels = spec.channels};
    const BatchNormForward forward{
        .x = g_.y, .epsilon = layer.epsilon, .momentum = layer.momentum, .relu = g_.relu};
    Block x = input(0);
    Block gamma_beta = parameters(spec, g_.drawn("parameters", element_count(spec)));
    Block y = tensor(g_.y);
    Block saved = parameters(statistics);
    Block running = parameters(statistics, g_.running());
    Block mask{backend().saved_bytes(forward)};
    std::vector<Block*> writes{&x, &gamma_beta, &y, &saved, &running};
    if (g_.relu) writes.push_back(&mask);
    run(BatchNormInference{.x = g_.y, .epsilon = layer.epsilon, .relu = g_.relu},
        {&x, &gamma_beta, &running, &y});
    expect_golden("inference", values(g_.y, y));
    run(forward, writes);
    expect_golden("y", values(g_.y, y));
    expect_golden("running", values(statistics, running));

    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    Block dparameters = parameters(spec);
    std::vector<Block*> operands{&x, &dy, &gamma_beta, &saved};
    if (g_.relu) operands.push_back(&mask);
    operands.insert(operands.end(), {&dx, &dparameters});
    run(BatchNormBackward{.x = g_.y, .epsilon = layer.epsilon, .relu = g_.relu}, operands);
    expect_golden("dx1", values(g_.y, dx));
    expect_golden("dparameters", values(spec, dparameters));
  }
  void check(const nets::Relu& /*layer*/) {
    Block x = input(0);
    Block y = tensor(g_.y);
    run(ReluForward{.x = g_.y}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    Block dx = masked_output_gradient(y);
    expect_golden("dx1", values(g_.y, dx));
  }
  void check(const nets::Gelu& layer) {
    check_both(GeluForward{.x = g_.y, .tanh = layer.tanh},
               GeluBackward{.x = g_.y, .tanh = layer.tanh}, {.x = true});
  }
  void check(const nets::Pool& layer) {
    check_both(PoolForward{.x = g_.x[0], .y = g_.y, .pool = layer},
               PoolBackward{.x = g_.x[0], .y = g_.y, .pool = layer});
  }
  // Same as in src/program/layers/shape_layers.cpp.
  void check(const nets::GlobalAveragePool& /*layer*/) {
    const nets::Extent all{.height = g_.x[0].image.height, .width = g_.x[0].image.width};
    check(nets::Pool{.kind = nets::PoolKind::kAverage, .kernel = all, .stride = all});
  }
  void check(const nets::LocalResponseNorm& layer) {
    check_both(LrnForward{.x = g_.y, .norm = layer}, LrnBackward{.x = g_.y, .norm = layer},
               {.x = true, .y = true});
  }
  void check(const nets::Dropout& layer) {
    check_both(DropoutForward{.x = g_.y, .probability = layer.probability, .stream = g_.stream},
               DropoutBackward{.x = g_.y, .probability = layer.probability, .stream = g_.stream});
  }
  // Add has no backward kernel: both inputs get dy. If two layers read a value, one operation sums
  // their gradients.
  void check(const nets::Add& /*layer*/) {
    Block a = input(0);
    Block b = input(1);
    Block y = tensor(g_.y);
    run(AddForward{.x = g_.y, .relu = g_.relu}, {&a, &b, &y});
    expect_golden("y", values(g_.y, y));
    Block dx = g_.relu ? masked_output_gradient(y) : output_gradient();
    expect_golden("dx1", values(g_.y, dx));
    expect_golden("dx2", values(g_.y, dx));
    if (g_.relu) return;
    run(AddGradients{.x = g_.y}, {&a, &b, &y});
    expect_golden("y", values(g_.y, y));
  }
  void check(const nets::Concat& /*layer*/) {
    std::vector<Block> parts;
    std::vector<Block> gradients;
    ConcatBackward backward{.y = g_.y, .slices = {}};
    std::size_t channel = 0;
    for (std::size_t i = 0; i < g_.x.size(); ++i) {
      parts.push_back(input(i));
      gradients.push_back(tensor(g_.x[i]));
      backward.slices.push_back({.x = g_.x[i], .first_channel = channel, .accumulates = false});
      channel += g_.x[i].image.channels;
    }
    Block y = tensor(g_.y);
    run(ConcatForward{.parts = g_.x}, followed_by(parts, y));
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    std::vector<Block*> operands = followed_by(gradients, dy);
    std::rotate(operands.begin(), operands.end() - 1, operands.end());
    run(backward, operands);
    for (std::size_t i = 0; i < g_.x.size(); ++i) {
      expect_golden("dx" + std::to_string(i + 1), values(g_.x[i], gradients[i]));
    }
  }
  // Same as in src/program/layers/shape_layers.cpp.
  void check(const nets::Crop& layer) {
    const nets::Shape& whole = g_.x[0].image;
    const nets::Extent offset = layer.is_centred
                                    ? nets::Extent{.height = (whole.height - g_.y.image.height) / 2,
                                                   .width = (whole.width - g_.y.image.width) / 2}
                                    : layer.offset;
    check_both(CropForward{.x = g_.x[0], .y = g_.y, .offset = offset},
               CropBackward{.x = g_.x[0], .y = g_.y, .offset = offset});
  }
  void check(const nets::SoftmaxCrossEntropy& layer) {
    constexpr float kBefore = 1.5F;  // another head's loss
    const std::vector<std::int32_t> labels = g_.labels(g_.x[0].image.channels);
    Block logits = input(0);
    Block label{um::Bytes{labels.size() * sizeof(std::int32_t)}};
    std::memcpy(label.data(), labels.data(), labels.size() * sizeof(std::int32_t));
    Block result{float_bytes(2)};
    Block dx = tensor(g_.x[0]);
    SoftmaxCrossEntropyTrain train{.x = g_.x[0], .weight = layer.weight};
    run(train, {&logits, &label, &result, &dx});
    expect_golden("loss", {static_cast<double>(result.floats()[0])});
    EXPECT_EQ(static_cast<double>(result.floats()[1]), g_.results.at("correct").at(0));
    expect_golden("dx1", values(g_.x[0], dx));
    train.accumulates = true;
    result.floats()[0] = kBefore;
    run(train, {&logits, &label, &result, &result, &dx});
    expect_golden("loss", {static_cast<double>(result.floats()[0] - kBefore)});
    expect_golden("dx1", values(g_.x[0], dx));
  }
  void check(const nets::Flatten& /*layer*/) { FAIL() << "no kernel flattens"; }

  // Checks y and dx of a layer without parameters.
  void check_both(const Operation& forward, const Operation& backward, const Reads& reads = {}) {
    Block x = input(0);
    Block y = tensor(g_.y);
    Block saved{backend().saved_bytes(forward)};
    const bool saves = backend().saved_bytes(forward) > um::Bytes{};
    std::vector<Block*> operands{&x, &y};
    if (saves) operands.push_back(&saved);
    run(forward, operands, g_.context);
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    operands.clear();
    if (reads.x) operands.push_back(&x);
    if (reads.y) operands.push_back(&y);
    operands.push_back(&dy);
    if (saves) operands.push_back(&saved);
    operands.push_back(&dx);
    run(backward, operands, g_.context);
    expect_golden("dx1", values(g_.x[0], dx));
  }

 private:
  static std::vector<Block*> followed_by(std::vector<Block>& blocks, Block& last) {
    std::vector<Block*> all;
    all.reserve(blocks.size() + 1);
    for (Block& block : blocks) all.push_back(&block);
    all.push_back(&last);
    return all;
  }

  // Checks every algorithm of the three operations of a layer with weights.
  template <class Geometry>
  void check_weighted(const Geometry& geometry) {
    const ParameterSpec spec = geometry.parameters();
    Block x = input(0);
    Block w = parameters(spec, g_.drawn("parameters", element_count(spec)));
    Block y = tensor(g_.y);
    const auto run_all = [&](const Operation& operation, const std::vector<Block*>& operands,
                             const std::string& part, const auto& result) {
      for (const AlgorithmInfo& algorithm : backend().algorithms(operation)) {
        run_with(algorithm.name, operation, operands);
        expect_golden(part, result(), algorithm.name);
      }
    };
    run_all(WeightedForward<Geometry>{.geometry = geometry, .relu = g_.relu}, {&x, &w, &y}, "y",
            [&] { return values(g_.y, y); });
    Block dy = g_.relu ? masked_output_gradient(y) : output_gradient();
    Block dx = tensor(g_.x[0]);
    Block dw = parameters(spec);
    run_all(WeightedBackwardData<Geometry>{.geometry = geometry}, {&dy, &w, &dx}, "dx1",
            [&] { return values(g_.x[0], dx); });
    run_all(WeightedBackwardWeights<Geometry>{.geometry = geometry}, {&x, &dy, &dw}, "dparameters",
            [&] { return values(spec, dw); });
  }
};

// Checks each kind of layer that only networks of tokens have.
class GoldenSequenceLayers : public GoldenImageLayers {
 protected:
  void check(const nets::Embedding& layer) {
    const EmbeddingForward forward{.y = g_.y, .vocabulary = layer.vocabulary};
    const ParameterSpec spec = forward.parameters();
    Block tokens = tensor(g_.x[0], g_.drawn_tokens("x1", g_.x[0].elements(), layer.vocabulary));
    Block table = parameters(spec, g_.drawn("parameters", element_count(spec)));
    Block y = tensor(g_.y);
    run(forward, {&tokens, &table, &y});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block gradient = parameters(spec);
    EmbeddingBackward backward{.y = g_.y, .vocabulary = layer.vocabulary};
    run(backward, {&tokens, &dy, &gradient});
    expect_golden("dparameters", values(spec, gradient));
    backward.accumulates = true;
    run(backward, {&tokens, &dy, &gradient, &gradient});
    expect_golden("dparameters", halves(values(spec, gradient)));
  }
  void check(const nets::PositionEmbedding& layer) {
    const PositionParameters spec{
        .positions = layer.positions, .segments = layer.segments, .features = g_.y.image.channels};
    check_added(PositionsForward{.x = g_.y, .parameters = spec}, spec);
    Block dy = output_gradient();
    Block gradient = parameters(spec);
    run(PositionsBackward{.x = g_.y, .parameters = spec}, {&dy, &gradient});
    // No kernel computes dx: the layer passes dy on, which equals PyTorch's dx.
    const Values drawn = g_.drawn("dy", g_.y.elements());
    expect_golden("dx1", drawn);
    EXPECT_EQ(values(g_.y, dy), test::rounded(drawn)) << "dy is read, and handed on as it is";
    expect_golden("dparameters", values(ParameterSpec{spec}, gradient));
  }
  void check(const nets::LayerNorm& layer) { check_row_norm(layer.epsilon, true); }
  void check(const nets::RmsNorm& layer) { check_row_norm(layer.epsilon, false); }
  void check(const nets::Swiglu& /*layer*/) {
    check_both(SwigluForward{.y = g_.y}, SwigluBackward{.y = g_.y}, {.x = true});
  }
  void check(const nets::Rotary& layer) {
    const Heads heads{.heads = layer.heads, .kv_heads = nets::key_heads(layer)};
    const RotaryForward forward{.x = g_.y, .heads = heads, .base = layer.base};
    const RotaryBackward backward{.x = g_.y, .heads = heads, .base = layer.base};
    check_both(forward, backward);
    Block x = input(0);
    run(forward, {&x, &x});
    expect_golden("y", values(g_.y, x), "in place");
    Block dy = output_gradient();
    run(backward, {&dy, &dy});
    expect_golden("dx1", values(g_.y, dy), "over dy");
  }
  void check(const nets::Attention& layer) {
    const AttentionForward forward{
        .geometry = {.x = g_.x[0],
                     .heads = {.heads = layer.heads, .kv_heads = nets::key_heads(layer)},
                     .is_causal = layer.causal,
                     .dropout = layer.dropout,
                     .stream = g_.stream}};
    check_both(forward, AttentionBackward{.geometry = forward.geometry}, {.x = true, .y = true});
  }
  void check(const nets::ImageTokens& layer) {
    const ClassTokenParameters spec{.features = g_.y.image.channels};
    const ImageTokensForward forward{.x = g_.x[0], .class_token = layer.class_token};
    Block x = input(0);
    Block token = parameters(spec, g_.drawn("parameters", spec.features));
    Block y = tensor(g_.y);
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    Block gradient = parameters(spec);
    const ImageTokensBackward backward{.x = g_.x[0], .class_token = layer.class_token};
    if (!layer.class_token) {
      run(forward, {&x, &y});
      run(backward, {&dy, &dx});
    } else {
      run(forward, {&x, &token, &y});
      run(backward, {&dy, &dx, &gradient});
      expect_golden("dparameters", values(ParameterSpec{spec}, gradient));
    }
    expect_golden("y", values(g_.y, y));
    expect_golden("dx1", values(g_.x[0], dx));
  }
  void check(const nets::FirstToken& /*layer*/) {
    check_both(FirstTokenForward{.x = g_.x[0]}, FirstTokenBackward{.x = g_.x[0]});
  }
  void check(const nets::VocabularyLoss& layer) {
    const VocabularyGeometry geometry{
        .x = g_.x[0], .vocabulary = layer.vocabulary, .bias = layer.bias};
    const std::vector<std::int32_t> labels = g_.labels(layer.vocabulary);
    const ParameterSpec table = geometry.table();
    const ParameterSpec bias = geometry.bias_parameters();
    const Values drawn =
        g_.drawn("parameters", element_count(table) + (layer.bias ? layer.vocabulary : 0));
    const auto cut = drawn.begin() + static_cast<std::ptrdiff_t>(element_count(table));
    Block x = input(0);
    Block weights = parameters(table, {drawn.begin(), cut});
    Block label = numbers(labels);
    Block result{float_bytes(2)};
    Block dx = tensor(g_.x[0]);
    Block dtable = parameters(table);
    Block dbias = parameters(bias);
    std::vector<Block*> reads{&x, &weights, &label};
    std::vector<Block*> writes{&result, &dx, &dtable};
    std::optional<Block> biases;
    if (layer.bias) {
      biases = parameters(bias, {cut, drawn.end()});
      reads.push_back(&*biases);
      writes.push_back(&dbias);
    }
    std::vector<Block*> all = reads;
    all.insert(all.end(), writes.begin(), writes.end());
    run(VocabularyLossTrain{.geometry = geometry}, all);
    expect_golden("loss", {static_cast<double>(result.floats()[0])});
    EXPECT_EQ(static_cast<double>(result.floats()[1]), g_.results.at("correct").at(0));
    expect_golden("dx1", values(g_.x[0], dx));
    Values gradient = values(table, dtable);
    if (layer.bias) {
      const Values more = values(bias, dbias);
      gradient.insert(gradient.end(), more.begin(), more.end());
    }
    expect_golden("dparameters", gradient);
    reads.push_back(&result);
    run(VocabularyLossEvaluate{.geometry = geometry}, reads);
    const double sum_of_losses = static_cast<double>(result.floats()[0]);
    std::ranges::replace(all, &dx, &x);
    run(VocabularyLossTrain{.geometry = geometry}, all);
    EXPECT_EQ(x.bytes(), dx.bytes()) << "over x";
    const auto counted = std::count_if(labels.begin(), labels.end(), [](auto l) { return l >= 0; });
    expect_golden("loss", {sum_of_losses / static_cast<double>(counted)});
  }

 private:
  static Values halves(Values numbers) {
    for (double& number : numbers) number /= 2;
    return numbers;
  }
  // Checks an operation that may overwrite its input; the in-place run comes last.
  template <class Op>
  void check_added(const Op& forward, const ParameterSpec& spec) {
    Block x = input(0);
    Block table = parameters(spec, g_.drawn("parameters", element_count(spec)));
    Block y = tensor(g_.y);
    run(forward, {&x, &table, &y});
    expect_golden("y", values(g_.y, y));
    run(forward, {&x, &table, &x});
    expect_golden("y", values(g_.y, x), "in place");
  }
  void check_row_norm(float epsilon, bool is_centred) {
    const RowNormForward forward{.x = g_.y, .epsilon = epsilon, .is_centred = is_centred};
    const ParameterSpec spec = forward.parameters();
    Block x = input(0);
    Block gamma = parameters(spec, g_.drawn("parameters", element_count(spec)));
    Block y = tensor(g_.y);
    Block saved{backend().saved_bytes(forward)};
    run(forward, {&x, &gamma, &y, &saved});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block gradient = parameters(spec);
    run(RowNormBackward{.x = g_.y, .epsilon = epsilon, .is_centred = is_centred},
        {&x, &dy, &gamma, &saved, &dy, &gradient});  // writes over dy
    expect_golden("dx1", values(g_.y, dy));
    expect_golden("dparameters", values(spec, gradient));
  }
};

class GoldenLayer : public GoldenSequenceLayers {
 protected:
  using GoldenImageLayers::check;
  using GoldenSequenceLayers::check;
};

TEST_P(GoldenLayer, IsThatOfPyTorch) {
  std::visit([&](const auto& layer) { check(layer); }, g_.layer);
}

INSTANTIATE_TEST_SUITE_P(OfPyTorch, GoldenLayer, testing::ValuesIn(LayerGolden::read_all()));

}  // namespace
}  // namespace spillway::host
