#include "nets/shape_inference.h"

#include <cstddef>
#include <tuple>
#include <variant>

#include "nets/layer_kinds.h"
#include "nets/shape.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

// Returns a layer's output shape for `inputs`, or throws Error.
class Inference {
 public:
  Inference(const std::string& name, const Layer& layer, const std::vector<Shape>& inputs)
      : name_{name}, layer_{layer}, inputs_{inputs} {}

  Shape operator()(const Convolution& layer) const {
    expect_images();
    expect_groups(layer.channels, layer.groups);
    expect_kernel(layer);
    return slide(layer.channels, dilated(layer.kernel, layer.dilation), layer, positions);
  }
  Shape operator()(const TransposedConvolution& layer) const {
    expect_images();
    expect_groups(layer.channels, layer.groups);
    expect_kernel(layer);
    refuse_unless(layer.output_padding.height < layer.stride.height &&
                      layer.output_padding.width < layer.stride.width,
                  "needs an output padding of less than its stride");
    const Extent kernel = dilated(layer.kernel, layer.dilation);
    const Shape y{
        .channels = layer.channels,
        .height = spread(x().height, {kernel.height, layer.stride.height, layer.padding.height},
                         layer.output_padding.height),
        .width = spread(x().width, {kernel.width, layer.stride.width, layer.padding.width},
                        layer.output_padding.width)};
    refuse_unless(y.elements() > 0, "cuts off all that it makes of what it reads, " +
                                        to_string(x()) + "; use less padding");
    return y;
  }
  Shape operator()(const Pool& layer) const {
    expect_images();
    refuse_unless(
        layer.padding.height < layer.kernel.height && layer.padding.width < layer.kernel.width,
        "has windows that lie in the padding alone; its padding must be less than its kernel");
    const Shape whole = slide(x().channels, layer.kernel, layer, positions);
    if (!layer.rounds_up) return whole;
    const Shape rounded = slide(x().channels, layer.kernel, layer, positions_rounded_up);
    refuse_unless(layer.kind == PoolKind::kMax || !layer.counts_padding || rounded == whole,
                  "counts the padding of a last window that reaches beyond it, which frameworks do "
                  "differently; let it not count padding, or not round up");
    return rounded;
  }
  Shape operator()(const LocalResponseNorm& layer) const {
    expect_images();
    refuse_unless(layer.size % 2 == 1, "needs an odd number of channels, its own in the middle");
    refuse_unless(layer.k > 0 && layer.alpha >= 0 && layer.beta >= 0,
                  "needs a k above 0 and an alpha and a beta of at least 0");
    return x();
  }
  Shape operator()(const GlobalAveragePool& /*layer*/) const {
    expect_images();
    return {.channels = x().channels};
  }
  Shape operator()(const Linear& layer) const {
    expect_numbers();
    refuse_unless(layer.features > 0, "needs at least one feature");
    if (x().form == Form::kSequence) return sequence(x().height, layer.features);
    return {.channels = layer.features};
  }
  Shape operator()(const Flatten& /*layer*/) const {
    expect_images();
    return {.channels = x().elements()};
  }
  Shape operator()(const BatchNorm& layer) const {
    expect_images();
    refuse_unless(layer.epsilon > 0 && layer.momentum >= 0 && layer.momentum <= 1,
                  "needs an epsilon above 0 and a momentum from 0 to 1");
    return x();
  }
  template <class Plain>
  requires Plain::kKeepsShape Shape operator()(const Plain& /*layer*/) const {
    expect_numbers();
    return x();
  }
  Shape operator()(const Dropout& layer) const {
    expect_numbers();
    refuse_unless(layer.probability >= 0 && layer.probability < 1,
                  "needs a probability of at least 0 and less than 1");
    return x();
  }
  Shape operator()(const Add& /*layer*/) const {
    expect_numbers();
    refuse_unless(inputs_[0] == inputs_[1], "adds only equal shapes and reads " +
                                                to_string(inputs_[0]) + " and " +
                                                to_string(inputs_[1]));
    return x();
  }
  Shape operator()(const Concat& /*layer*/) const {
    expect_images();
    Shape y = x();
    y.channels = 0;
    for (const Shape& part : inputs_) {
      refuse_unless(part.height == y.height && part.width == y.width,
                    "joins only images of one height and width and reads " + to_string(x()) +
                        " and " + to_string(part));
      y.channels += part.channels;
    }
    return y;
  }
  Shape operator()(const Crop& layer) const {
    expect_images();
    const Shape& like = inputs_[1];
    const Extent offset = layer.is_centred ? square(0) : layer.offset;
    refuse_unless(offset.height <= x().height && like.height <= x().height - offset.height &&
                      offset.width <= x().width && like.width <= x().width - offset.width,
                  "finds no window of " + to_string(like) + " in what it reads, " + to_string(x()));
    return {.channels = x().channels, .height = like.height, .width = like.width};
  }
  Shape operator()(const SoftmaxCrossEntropy& layer) const {
    expect_images();
    refuse_unless(layer.weight > 0, "needs a weight above 0");
    return x();
  }
  Shape operator()(const Embedding& layer) const {
    refuse_unless(x().form == Form::kTokens, "reads tokens, not " + to_string(x()));
    refuse_unless(layer.vocabulary > 0 && layer.features > 0,
                  "needs at least one token in its vocabulary and one feature");
    return sequence(x().height, layer.features);
  }
  Shape operator()(const PositionEmbedding& layer) const {
    expect_sequence();
    refuse_unless(x().height <= layer.rows(x()), "has " + std::to_string(layer.positions) +
                                                     " positions, and reads " + to_string(x()) +
                                                     "; use a smaller --sequence-length");
    return x();
  }
  Shape operator()(const LayerNorm& layer) const { return norm(layer.epsilon); }
  Shape operator()(const RmsNorm& layer) const { return norm(layer.epsilon); }
  Shape operator()(const Swiglu& /*layer*/) const {
    expect_sequence();
    refuse_unless(x().channels % 2 == 0, "needs as many values as gates, and reads " +
                                             std::to_string(x().channels) + " numbers a token");
    return sequence(x().height, x().channels / 2);
  }
  Shape operator()(const Rotary& layer) const {
    expect_heads(layer);
    refuse_unless(head_width(layer) % 2 == 0, "turns pairs of channels, but its heads have " +
                                                  std::to_string(head_width(layer)) + " each");
    refuse_unless(layer.base > 0, "needs a base above 0");
    return x();
  }
  Shape operator()(const Attention& layer) const {
    expect_heads(layer);
    refuse_unless(layer.dropout >= 0 && layer.dropout < 1,
                  "needs a dropout of at least 0 and less than 1");
    return sequence(x().height, layer.heads * head_width(layer));
  }
  Shape operator()(const ImageTokens& layer) const {
    expect_images();
    return sequence(x().height * x().width + (layer.class_token ? 1 : 0), x().channels);
  }
  Shape operator()(const FirstToken& /*layer*/) const {
    expect_sequence();
    return {.channels = x().channels};
  }
  Shape operator()(const VocabularyLoss& layer) const {
    expect_sequence();
    refuse_unless(layer.vocabulary > 1, "needs at least two tokens in its vocabulary");
    refuse_unless(
        inputs_.size() == 1 || inputs_[1] == x(),
        "reads " + to_string(x()) + ", but its table is made for " + to_string(inputs_.back()));
    return sequence(x().height, layer.vocabulary);
  }

 private:
  [[nodiscard]] const Shape& x() const { return inputs_[0]; }

  void refuse_unless(bool fits, const std::string& why) const {
    if (fits) return;
    throw um::Error{"layer " + name_ + " (" + to_string(layer_) + ") " + why};
  }

  void expect_images() const {
    for (const Shape& input : inputs_) {
      refuse_unless(input.form == Form::kImage, "reads images, not " + to_string(input));
    }
  }
  void expect_sequence() const {
    refuse_unless(x().form == Form::kSequence,
                  "reads sequences, not " + std::string{x().form == Form::kTokens
                                                            ? "tokens; embed them first"
                                                            : "images; use image-tokens"});
  }
  void expect_numbers() const {
    refuse_unless(x().form != Form::kTokens, "cannot read tokens; embed them first");
  }

  [[nodiscard]] Shape norm(float epsilon) const {
    expect_sequence();
    refuse_unless(epsilon > 0, "needs an epsilon above 0");
    return x();
  }

  template <class Headed>
  [[nodiscard]] std::size_t head_width(const Headed& layer) const {
    return x().channels / (layer.heads + 2 * key_heads(layer));
  }
  template <class Headed>
  void expect_heads(const Headed& layer) const {
    expect_sequence();
    const std::size_t keys = key_heads(layer);
    refuse_unless(layer.heads > 0, "needs at least one head");
    refuse_unless(layer.heads % keys == 0, "needs a number of key heads that divides its " +
                                               std::to_string(layer.heads) + " heads, which " +
                                               std::to_string(keys) + " does not");
    refuse_unless(layer.heads <= x().channels && x().channels % (layer.heads + 2 * keys) == 0,
                  "reads " + std::to_string(x().channels) +
                      " numbers a token, which are not queries of " + std::to_string(layer.heads) +
                      " heads with keys and values of " + std::to_string(keys));
  }

  void expect_groups(std::size_t channels, std::size_t groups) const {
    refuse_unless(channels > 0, "needs at least one channel");
    refuse_unless(groups > 0 && x().channels % groups == 0 && channels % groups == 0,
                  "needs a number of groups that divides its " + std::to_string(channels) +
                      " channels and the " + std::to_string(x().channels) + " it reads");
  }

  template <class Convolving>
  void expect_kernel(const Convolving& layer) const {
    const auto is_positive = [](const Extent& e) { return e.height > 0 && e.width > 0; };
    refuse_unless(
        is_positive(layer.kernel) && is_positive(layer.stride) && is_positive(layer.dilation),
        "needs a kernel, a stride and a dilation of at least 1");
  }

  // Returns the output shape of a layer with a sliding window; `count` computes the windows along
  // each side.
  template <class Sliding>
  [[nodiscard]] Shape slide(std::size_t channels, const Extent& kernel, const Sliding& layer,
                            std::size_t (*count)(std::size_t, const Window&)) const {
    const auto& [stride, padding] = std::tie(layer.stride, layer.padding);
    refuse_unless(kernel.height > 0 && kernel.width > 0 && stride.height > 0 && stride.width > 0,
                  "needs a kernel and a stride of at least 1");
    const Shape y{.channels = channels,
                  .height = count(x().height, {kernel.height, stride.height, padding.height}),
                  .width = count(x().width, {kernel.width, stride.width, padding.width})};
    refuse_unless(y.elements() > 0,
                  "does not fit what it reads, " + to_string(x()) + "; use a larger --image-size");
    return y;
  }

  const std::string& name_;
  const Layer& layer_;
  const std::vector<Shape>& inputs_;
};

}  // namespace

Shape infer_shape(const std::string& name, const Layer& layer, const std::vector<Shape>& inputs) {
  const InputCount count = input_count(layer);
  um::expects(inputs.size() >= count.min && inputs.size() <= count.max,
              "as many inputs as the layer reads");
  return std::visit(Inference{name, layer, inputs}, layer);
}

}  // namespace spillway::nets
