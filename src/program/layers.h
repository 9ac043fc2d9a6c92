#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nets/layer.h"
#include "nets/network.h"
#include "src/program/gradients.h"
#include "src/program/step_builder.h"

namespace spillway::layers {

/// A layer in its place in the network.
struct Place {
  std::string name;
  std::vector<nets::NodeId> inputs;
  nets::NodeId output;  ///< whose value the layer makes
  bool relu;            ///< it ends with a ReLU
};

/// Emits the backward tasks of a layer: takes the gradient of its output and contributes those of
/// its inputs.
using Backward = std::function<void(Gradients&)>;

/// Each forward() emits the layer's forward tasks, sets the value of `place.output`, and returns
/// how to go back. What the way back captures is all that the layer saves: the fewest tensors that
/// its backward tasks need. Nothing, where no value that the layer reads needs a gradient (the
/// image) and nothing is trained. In an evaluation step nobody goes back; batch norm uses its
/// running statistics, dropout does nothing and the loss has no gradient.
[[nodiscard]] Backward forward(const nets::Convolution& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::TransposedConvolution& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::BatchNorm& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Relu& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Gelu& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Pool& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::GlobalAveragePool& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::LocalResponseNorm& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Linear& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Dropout& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Add& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Concat& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Crop& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Flatten& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::SoftmaxCrossEntropy& layer, const Place& place,
                               StepBuilder& step);

[[nodiscard]] Backward forward(const nets::Embedding& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::PositionEmbedding& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::LayerNorm& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::RmsNorm& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Swiglu& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Rotary& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::Attention& layer, const Place& place, StepBuilder& step);
[[nodiscard]] Backward forward(const nets::ImageTokens& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::FirstToken& layer, const Place& place,
                               StepBuilder& step);
[[nodiscard]] Backward forward(const nets::VocabularyLoss& layer, const Place& place,
                               StepBuilder& step);

}  // namespace spillway::layers
