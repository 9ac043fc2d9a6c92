#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/src/host/golden_image_layers.h"

namespace spillway::host {

/// Checks each kind of layer that only networks of tokens have.
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
    // No kernel makes dx: the layer hands on dy, which PyTorch's dx is too.
    const Values drawn = g_.drawn("dy", g_.y.elements());
    expect_golden("dx1", drawn);
    EXPECT_EQ(values(g_.y, dy), test::rounded(drawn)) << "dy is read, and handed on as it is";
    expect_golden("dparameters", values(ParameterSpec{spec}, gradient));
  }
  void check(const nets::LayerNorm& layer) { check_row_norm(layer.epsilon, true); }
  void check(const nets::RmsNorm& layer) { check_row_norm(layer.epsilon, false); }
  void check(const nets::Swiglu& /*layer*/) {
    Block x = input(0);
    Block y = tensor(g_.y);
    run(SwigluForward{.y = g_.y}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    run(SwigluBackward{.y = g_.y}, {&x, &dy, &dx});
    expect_golden("dx1", values(g_.x[0], dx));
  }
  void check(const nets::Rotary& layer) {
    const Heads heads{.heads = layer.heads, .kv_heads = nets::key_heads(layer)};
    Block x = input(0);
    Block y = tensor(g_.y);
    run(RotaryForward{.x = g_.y, .heads = heads, .base = layer.base}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    run(RotaryForward{.x = g_.y, .heads = heads, .base = layer.base}, {&x, &x});
    expect_golden("y", values(g_.y, x), "in place");
    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    run(RotaryBackward{.x = g_.y, .heads = heads, .base = layer.base}, {&dy, &dx});
    expect_golden("dx1", values(g_.y, dx));
    run(RotaryBackward{.x = g_.y, .heads = heads, .base = layer.base}, {&dy, &dy});
    EXPECT_EQ(dy.bytes(), dx.bytes()) << "over dy";
  }
  void check(const nets::Attention& layer) {
    const AttentionForward forward{
        .geometry = {.x = g_.x[0],
                     .heads = {.heads = layer.heads, .kv_heads = nets::key_heads(layer)},
                     .is_causal = layer.causal,
                     .dropout = layer.dropout,
                     .stream = g_.stream}};
    Block x = input(0);
    Block y = tensor(g_.y);
    Block saved{backend().saved_bytes(forward)};
    run(forward, {&x, &y, &saved}, g_.context);
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    run(AttentionBackward{.geometry = forward.geometry}, {&x, &y, &dy, &saved, &dx}, g_.context);
    expect_golden("dx1", values(g_.x[0], dx));
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
    Block x = input(0);
    Block y = tensor(g_.y);
    run(FirstTokenForward{.x = g_.x[0]}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    run(FirstTokenBackward{.x = g_.x[0]}, {&dy, &dx});
    expect_golden("dx1", values(g_.x[0], dx));
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
  // An operation that may go over what it reads, and does so last.
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
        {&x, &dy, &gamma, &saved, &dy, &gradient});  // over dy
    expect_golden("dx1", values(g_.y, dy));
    expect_golden("dparameters", values(spec, gradient));
  }
};

}  // namespace spillway::host
