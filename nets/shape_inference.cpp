#include "nets/shape_inference.h"

#include <cstddef>
#include <variant>

#include "um/error.h"

namespace spillway::nets {
namespace {

// Positions of a window that moves over `size` numbers, with `padding` more on both sides; 0 when
// the window is larger than that.
std::size_t positions(std::size_t size, std::size_t kernel, std::size_t stride,
                      std::size_t padding) {
  const std::size_t padded = size + 2 * padding;
  return padded < kernel ? 0 : (padded - kernel) / stride + 1;
}

// The shape each layer makes of `inputs`, or an Error.
class Inference {
 public:
  Inference(const std::string& name, const Layer& layer, const std::vector<Shape>& inputs)
      : name_{name}, layer_{layer}, inputs_{inputs} {}

  Shape operator()(const Convolution& layer) const {
    refuse_unless(layer.channels > 0, "needs at least one channel");
    return window(layer.channels, layer.kernel, layer.stride, layer.padding);
  }
  Shape operator()(const Pool& layer) const {
    refuse_unless(
        layer.padding.height < layer.kernel.height && layer.padding.width < layer.kernel.width,
        "has windows that lie in the padding alone; its padding must be less than its kernel");
    return window(x().channels, layer.kernel, layer.stride, layer.padding);
  }
  Shape operator()(const GlobalAveragePool& /*layer*/) const { return {.channels = x().channels}; }
  Shape operator()(const Linear& layer) const {
    refuse_unless(layer.features > 0, "needs at least one feature");
    return {.channels = layer.features};
  }
  Shape operator()(const Flatten& /*layer*/) const { return {.channels = x().elements()}; }
  Shape operator()(const BatchNorm& /*layer*/) const { return x(); }
  Shape operator()(const Relu& /*layer*/) const { return x(); }
  Shape operator()(const Dropout& layer) const {
    refuse_unless(layer.probability >= 0 && layer.probability < 1,
                  "needs a probability of at least 0 and less than 1");
    return x();
  }
  Shape operator()(const Add& /*layer*/) const {
    refuse_unless(inputs_[0] == inputs_[1], "adds only equal shapes and reads " +
                                                to_string(inputs_[0]) + " and " +
                                                to_string(inputs_[1]));
    return x();
  }
  Shape operator()(const SoftmaxCrossEntropy& /*layer*/) const {
    refuse_unless(x().height == 1 && x().width == 1, "needs one number for each class and reads " +
                                                         to_string(x()) +
                                                         "; put a linear layer before it");
    return x();
  }

 private:
  [[nodiscard]] const Shape& x() const { return inputs_[0]; }

  void refuse_unless(bool fits, const std::string& why) const {
    if (fits) return;
    throw um::Error{"layer " + name_ + " (" + to_string(layer_) + ") " + why};
  }

  [[nodiscard]] Shape window(std::size_t channels, const Extent& kernel, const Extent& stride,
                             const Extent& padding) const {
    refuse_unless(kernel.height > 0 && kernel.width > 0 && stride.height > 0 && stride.width > 0,
                  "needs a kernel and a stride of at least 1");
    const Shape y{.channels = channels,
                  .height = positions(x().height, kernel.height, stride.height, padding.height),
                  .width = positions(x().width, kernel.width, stride.width, padding.width)};
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
  um::expects(inputs.size() == (std::holds_alternative<Add>(layer) ? 2 : 1),
              "an Add of two inputs or another layer of one");
  return std::visit(Inference{name, layer, inputs}, layer);
}

}  // namespace spillway::nets
