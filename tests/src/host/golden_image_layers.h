#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "src/ops/weighted_operations.h"
#include "tests/src/host/golden_layer.h"

namespace spillway::host {

/// Checks each kind of layer of images, some of which networks of tokens have too.
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
    Block x = input(0);
    Block y = tensor(g_.y);
    run(GeluForward{.x = g_.y, .tanh = layer.tanh}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    run(GeluBackward{.x = g_.y, .tanh = layer.tanh}, {&x, &dy, &dx});
    expect_golden("dx1", values(g_.y, dx));
  }
  void check(const nets::Pool& layer) {
    const PoolForward forward{.x = g_.x[0], .y = g_.y, .pool = layer};
    const bool has_index = layer.kind == nets::PoolKind::kMax;
    Block x = input(0);
    Block y = tensor(g_.y);
    Block index{backend().saved_bytes(forward)};
    std::vector<Block*> operands{&x, &y};
    if (has_index) operands.push_back(&index);
    run(forward, operands);
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    operands = {&dy, &dx};
    if (has_index) operands.insert(operands.begin() + 1, &index);
    run(PoolBackward{.x = g_.x[0], .y = g_.y, .pool = layer}, operands);
    expect_golden("dx1", values(g_.x[0], dx));
  }
  // As src/step/layers/pool.cpp has it.
  void check(const nets::GlobalAveragePool& /*layer*/) {
    const nets::Extent all{.height = g_.x[0].image.height, .width = g_.x[0].image.width};
    check(nets::Pool{.kind = nets::PoolKind::kAverage, .kernel = all, .stride = all});
  }
  void check(const nets::LocalResponseNorm& layer) {
    Block x = input(0);
    Block y = tensor(g_.y);
    run(LrnForward{.x = g_.y, .norm = layer}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    run(LrnBackward{.x = g_.y, .norm = layer}, {&x, &y, &dy, &dx});
    expect_golden("dx1", values(g_.y, dx));
  }
  void check(const nets::Dropout& layer) {
    Block x = input(0);
    Block y = tensor(g_.y);
    run(DropoutForward{.x = g_.y, .probability = layer.probability, .stream = g_.stream}, {&x, &y},
        g_.context);
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    run(DropoutBackward{.x = g_.y, .probability = layer.probability, .stream = g_.stream},
        {&dy, &dx}, g_.context);
    expect_golden("dx1", values(g_.y, dx));
  }
  // It has no kernel for the way back, on which both get dy; what two readers of a value give back
  // is added up by one.
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
  // As src/step/layers/crop.cpp has it.
  void check(const nets::Crop& layer) {
    const nets::Shape& whole = g_.x[0].image;
    const nets::Extent offset = layer.is_centred
                                    ? nets::Extent{.height = (whole.height - g_.y.image.height) / 2,
                                                   .width = (whole.width - g_.y.image.width) / 2}
                                    : layer.offset;
    Block x = input(0);
    Block y = tensor(g_.y);
    run(CropForward{.x = g_.x[0], .y = g_.y, .offset = offset}, {&x, &y});
    expect_golden("y", values(g_.y, y));
    Block dy = output_gradient();
    Block dx = tensor(g_.x[0]);
    run(CropBackward{.x = g_.x[0], .y = g_.y, .offset = offset}, {&dy, &dx});
    expect_golden("dx1", values(g_.x[0], dx));
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

 private:
  static std::vector<Block*> followed_by(std::vector<Block>& blocks, Block& last) {
    std::vector<Block*> all;
    all.reserve(blocks.size() + 1);
    for (Block& block : blocks) all.push_back(&block);
    all.push_back(&last);
    return all;
  }

  // Every algorithm of the three operations of a layer with weights.
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

}  // namespace spillway::host
