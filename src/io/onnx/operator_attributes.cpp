#include "src/io/onnx/operator_attributes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "nets/layer.h"
#include "nets/shape.h"
#include "src/io/onnx/graph_reader.h"

namespace spillway {
namespace {

/// How an attribute encodes a hyper-parameter of a layer.
enum class AttributeForm : std::uint8_t {
  kPlain,      ///< a kernel of 2x3 as [2, 3], true as 1
  kBothSides,  ///< a padding of 2x3 as [2, 3, 2, 3]
  kComplement  ///< a momentum of 0.1 as 0.9
};

/// A hyper-parameter of the layer `L` and its name in ONNX.
template <typename L, typename T>
struct BoundAttribute {
  std::string_view word;
  T L::*member;
  AttributeForm form = AttributeForm::kPlain;
};

/// An attribute that must have one value, as layers support no other: 1, or a list of ones.
struct FixedAttribute {
  std::string_view word;
  std::int64_t value;
  bool is_written = false;  ///< to files; otherwise it is ONNX's default
};

/// An operator that is equivalent to a layer.
template <typename L, typename... A>
struct LayerOperator {
  using Type = L;
  std::string_view type;
  L start;  ///< with ONNX's defaults for omitted attributes
  std::tuple<A...> attributes;
};

template <typename L, typename... A>
[[nodiscard]] constexpr LayerOperator<L, A...> layer_operator(std::string_view type, L start,
                                                              A... attributes) {
  return {.type = type, .start = start, .attributes = {attributes...}};
}

template <typename L, typename T>
[[nodiscard]] constexpr BoundAttribute<L, T> bound(std::string_view word, T L::*member) {
  return {.word = word, .member = member};
}
template <typename L, typename T>
[[nodiscard]] constexpr BoundAttribute<L, T> bound(std::string_view word, T L::*member,
                                                   AttributeForm form) {
  return {.word = word, .member = member, .form = form};
}

// The default of a window's size and stride.
constexpr nets::Extent kStill = nets::square(1);

/// Maps operators to layers and back, for writing and reading. Layers that are not here take
/// several operators (export_onnx.cpp) and can only be written.
constexpr std::tuple kLayerOperators{
    layer_operator("Conv", nets::Convolution{.channels = 0},
                   bound("kernel_shape", &nets::Convolution::kernel),
                   bound("strides", &nets::Convolution::stride),
                   bound("pads", &nets::Convolution::padding, AttributeForm::kBothSides),
                   bound("dilations", &nets::Convolution::dilation),
                   bound("group", &nets::Convolution::groups)),
    layer_operator("ConvTranspose", nets::TransposedConvolution{.channels = 0},
                   bound("kernel_shape", &nets::TransposedConvolution::kernel),
                   bound("strides", &nets::TransposedConvolution::stride),
                   bound("pads", &nets::TransposedConvolution::padding, AttributeForm::kBothSides),
                   bound("dilations", &nets::TransposedConvolution::dilation),
                   bound("group", &nets::TransposedConvolution::groups),
                   bound("output_padding", &nets::TransposedConvolution::output_padding)),
    layer_operator("BatchNormalization", nets::BatchNorm{},
                   bound("epsilon", &nets::BatchNorm::epsilon),
                   bound("momentum", &nets::BatchNorm::momentum, AttributeForm::kComplement),
                   FixedAttribute{"training_mode", 0}, FixedAttribute{"spatial", 1}),
    layer_operator("Relu", nets::Relu{}),
    layer_operator("MaxPool", nets::Pool{.kernel = kStill, .stride = kStill},
                   bound("kernel_shape", &nets::Pool::kernel),
                   bound("strides", &nets::Pool::stride),
                   bound("pads", &nets::Pool::padding, AttributeForm::kBothSides),
                   bound("ceil_mode", &nets::Pool::rounds_up), FixedAttribute{"dilations", 1},
                   FixedAttribute{"storage_order", 0}),
    layer_operator(
        "AveragePool",
        nets::Pool{.kind = nets::PoolKind::kAverage, .kernel = kStill, .stride = kStill},
        bound("kernel_shape", &nets::Pool::kernel), bound("strides", &nets::Pool::stride),
        bound("pads", &nets::Pool::padding, AttributeForm::kBothSides),
        bound("ceil_mode", &nets::Pool::rounds_up),
        bound("count_include_pad", &nets::Pool::counts_padding), FixedAttribute{"dilations", 1}),
    layer_operator("GlobalAveragePool", nets::GlobalAveragePool{}),
    layer_operator("LRN", nets::LocalResponseNorm{}, bound("size", &nets::LocalResponseNorm::size),
                   bound("alpha", &nets::LocalResponseNorm::alpha),
                   bound("beta", &nets::LocalResponseNorm::beta),
                   bound("bias", &nets::LocalResponseNorm::k)),
    layer_operator("Gemm", nets::Linear{.features = 0}, FixedAttribute{"transB", 1, true},
                   FixedAttribute{"transA", 0}, FixedAttribute{"alpha", 1},
                   FixedAttribute{"beta", 1}),
    layer_operator("Add", nets::Add{}),
    layer_operator("Concat", nets::Concat{}, FixedAttribute{"axis", 1, true}),
    layer_operator("Flatten", nets::Flatten{}, FixedAttribute{"axis", 1, true}),
    layer_operator("Dropout", nets::Dropout{}, bound("ratio", &nets::Dropout::probability),
                   FixedAttribute{"training_mode", 0}),
    layer_operator("LayerNormalization", nets::LayerNorm{},
                   bound("epsilon", &nets::LayerNorm::epsilon), FixedAttribute{"axis", -1, true})};

using Integers = std::vector<std::int64_t>;

Integers integers_of(const nets::Extent& extent, AttributeForm form) {
  const auto height = static_cast<std::int64_t>(extent.height);
  const auto width = static_cast<std::int64_t>(extent.width);
  if (form == AttributeForm::kBothSides) return {height, width, height, width};
  return {height, width};
}

OnnxAttribute attribute_of(const nets::Extent& extent, AttributeForm form) {
  return integers_of(extent, form);
}
OnnxAttribute attribute_of(std::size_t number, AttributeForm /*plain*/) {
  return static_cast<std::int64_t>(number);
}
OnnxAttribute attribute_of(bool yes, AttributeForm /*plain*/) { return std::int64_t{yes ? 1 : 0}; }
OnnxAttribute attribute_of(float number, AttributeForm form) {
  return form == AttributeForm::kComplement ? 1 - number : number;
}

// Stores an attribute in the hyper-parameter `member`. Returns whether its value is possible.
bool take(const OnnxAttribute& value, AttributeForm form, nets::Extent& member) {
  const auto* const sides = std::get_if<Integers>(&value);
  const bool is_known = sides != nullptr && std::ranges::all_of(*sides, [](std::int64_t side) {
                          return side >= 0 && side <= std::int64_t{nets::kLargestSide};
                        });
  if (!is_known || sides->size() < 2) return false;
  member = {.height = static_cast<std::size_t>((*sides)[0]),
            .width = static_cast<std::size_t>((*sides)[1])};
  return *sides == integers_of(member, form);
}
bool take(const OnnxAttribute& value, AttributeForm /*plain*/, std::size_t& member) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 1 || *number > std::int64_t{nets::kLargestWidth}) return false;
  member = static_cast<std::size_t>(*number);
  return true;
}
bool take(const OnnxAttribute& value, AttributeForm /*plain*/, bool& member) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || (*number != 0 && *number != 1)) return false;
  member = *number == 1;
  return true;
}
bool take(const OnnxAttribute& value, AttributeForm form, float& member) {
  const auto* const number = std::get_if<float>(&value);
  if (number == nullptr || !std::isfinite(*number)) return false;
  member = *number;
  if (form == AttributeForm::kComplement) {  // 0.9 gives 0.1, not 0.10000002
    constexpr double kDigits = 1e6;
    member = static_cast<float>(std::round((1.0 - double{*number}) * kDigits) / kDigits);
  }
  return true;
}

bool has_value(const OnnxAttribute& value, std::int64_t wanted) {
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return *number == wanted;
  if (const auto* const number = std::get_if<float>(&value)) {
    return *number == static_cast<float>(wanted);
  }
  const auto* const list = std::get_if<Integers>(&value);
  return list != nullptr &&
         std::ranges::all_of(*list, [&](std::int64_t each) { return each == wanted; });
}

// Reads one attribute into the layer.
template <typename L>
class AttributeReading {
 public:
  AttributeReading(L& layer, const std::string& word, const OnnxAttribute& value)
      : layer_{layer}, word_{word}, value_{value} {}

  template <typename T>
  bool operator()(const BoundAttribute<L, T>& attribute) {
    return attribute.word == word_ && take(value_, attribute.form, layer_.*attribute.member);
  }
  bool operator()(const FixedAttribute& attribute) {
    return attribute.word == word_ && has_value(value_, attribute.value);
  }

 private:
  L& layer_;
  const std::string& word_;
  const OnnxAttribute& value_;
};

template <typename Operator>
nets::Layer layer_by(const Operator& entry, const OnnxNode& node) {
  auto layer = entry.start;
  for (const auto& [word, value] : node.attributes) {
    AttributeReading reading{layer, word, value};
    const bool is_taken = std::apply(
        [&](const auto&... attribute) { return (reading(attribute) || ...); }, entry.attributes);
    if (!is_taken) throw attribute_error(node, word);
  }
  return layer;
}

template <typename L, typename T>
void write(const L& layer, const BoundAttribute<L, T>& attribute, OnnxAttributes& attributes) {
  attributes[std::string{attribute.word}] = attribute_of(layer.*attribute.member, attribute.form);
}
template <typename L>
void write(const L& /*layer*/, const FixedAttribute& attribute, OnnxAttributes& attributes) {
  if (attribute.is_written) attributes[std::string{attribute.word}] = attribute.value;
}

// Max pools and average pools are the same layer type.
template <typename L>
bool is_of_kind(const L& /*layer*/, const L& /*start*/) {
  return true;
}
bool is_of_kind(const nets::Pool& layer, const nets::Pool& start) {
  return layer.kind == start.kind;
}

template <typename L, typename Operator>
std::optional<OnnxOperator> operator_by(const Operator& entry, const L& layer) {
  if constexpr (std::same_as<typename Operator::Type, L>) {
    if (!is_of_kind(layer, entry.start)) return {};
    OnnxOperator found{.type = std::string{entry.type}, .attributes = {}};
    std::apply([&](const auto&... attribute) { (write(layer, attribute, found.attributes), ...); },
               entry.attributes);
    return found;
  } else {
    return {};
  }
}

using Integers = std::vector<std::int64_t>;

// Returns a list of `count` numbers, each at least `least`; `otherwise` if the attribute is
// missing.
Integers list_attribute(const OnnxNode& node, const std::string& word, std::size_t count,
                        std::int64_t least, const Integers& otherwise) {
  const auto found = node.attributes.find(word);
  if (found == node.attributes.end()) return otherwise;
  const auto* const list = std::get_if<Integers>(&found->second);
  const bool is_known = list != nullptr && list->size() == count &&
                        std::ranges::all_of(*list, [&](std::int64_t each) {
                          return each >= least && each <= std::int64_t{nets::kLargestSide};
                        });
  if (!is_known) throw attribute_error(node, word);
  return *list;
}

// The window of a node along the height of an image, or along its width.
struct Side {
  const char* name;
  std::size_t image;
  std::size_t kernel;  // including dilation
  std::size_t stride;
  std::size_t output_padding = 0;
  std::size_t before = 0;  // padding
  std::size_t behind = 0;

  [[nodiscard]] std::size_t windows(bool rounds_up) const {
    const std::size_t padded = image + before + behind;
    if (padded < kernel) return 0;
    const std::size_t full = (padded - kernel) / stride + 1;
    const bool has_rest = (padded - kernel) % stride != 0 && full * stride < image + before;
    return rounds_up && has_rest ? full + 1 : full;
  }
  // Number of windows of a layer that pads both sides by `before`.
  [[nodiscard]] std::size_t windows_of_layer(bool rounds_up) const {
    const nets::Window window{.kernel = kernel, .stride = stride, .padding = before};
    return rounds_up ? nets::positions_rounded_up(image, window) : nets::positions(image, window);
  }
};

using Sides = std::array<Side, 2>;

class NodePadding {
 public:
  NodePadding(const OnnxNode& node, const nets::Shape& image,
              const std::optional<nets::Extent>& kernel)
      : node_{node}, image_{image}, kernel_{kernel} {}

  [[nodiscard]] OnnxNode even() const {
    OnnxNode even = node_;
    even.attributes.erase("auto_pad");
    const std::string automatic = auto_pad();
    const Integers pads = list_attribute(node_, "pads", 4, 0, {0, 0, 0, 0});
    if (automatic == "NOTSET" && pads[0] == pads[2] && pads[1] == pads[3]) return even;

    Sides sides = unpadded_sides();
    if (automatic == "NOTSET") {
      for (std::size_t i = 0; i < 2; ++i) {
        sides[i].before = static_cast<std::size_t>(pads[i]);
        sides[i].behind = static_cast<std::size_t>(pads[i + 2]);
      }
    } else {
      for (Side& side : sides) pad(side, automatic);
      expect_padded_once(sides, pads);
    }
    if (is_transposed()) {
      even.attributes["output_padding"] = even_output_padding(sides);
    } else {
      const bool rounds_up = rounds_up_evenly(sides, automatic);
      if (is_pool()) even.attributes["ceil_mode"] = std::int64_t{rounds_up ? 1 : 0};
    }
    even.attributes["pads"] = list_of(sides, {&Side::before, &Side::before});
    return even;
  }

 private:
  [[nodiscard]] bool is_transposed() const { return node_.type == "ConvTranspose"; }
  [[nodiscard]] bool is_pool() const { return node_.type.ends_with("Pool"); }

  [[nodiscard]] std::string auto_pad() const {
    const auto found = node_.attributes.find("auto_pad");
    if (found == node_.attributes.end()) return "NOTSET";
    const auto* const text = std::get_if<std::string>(&found->second);
    for (const char* const known : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
      if (text != nullptr && *text == known) return known;
    }
    throw attribute_error(node_, "auto_pad");
  }

  [[nodiscard]] Sides unpadded_sides() const {
    const auto pair = [&](const char* word, std::int64_t least, std::int64_t otherwise) {
      return list_attribute(node_, word, 2, least, {otherwise, otherwise});
    };
    const nets::Extent own = kernel_.value_or(nets::square(1));
    const Integers kernel = list_attribute(
        node_, "kernel_shape", 2, 1,
        {static_cast<std::int64_t>(own.height), static_cast<std::int64_t>(own.width)});
    const Integers stride = pair("strides", 1, 1);
    const Integers dilation = pair("dilations", 1, 1);
    const Integers more = pair("output_padding", 0, 0);
    const auto side = [&](std::size_t i, const char* name, std::size_t image) {
      return Side{.name = name,
                  .image = image,
                  .kernel = static_cast<std::size_t>((kernel[i] - 1) * dilation[i] + 1),
                  .stride = static_cast<std::size_t>(stride[i]),
                  .output_padding = static_cast<std::size_t>(more[i])};
    };
    return {side(0, "height", image_.height), side(1, "width", image_.width)};
  }

  // Pads by ONNX's auto_pad: with SAME, there is one window per stride of the image.
  void pad(Side& side, const std::string& automatic) const {
    if (automatic == "VALID") return;
    std::size_t padding = 0;
    if (is_transposed()) {
      const std::size_t covered = side.kernel + side.output_padding;
      if (covered < side.stride) throw attribute_error(node_, "auto_pad");
      padding = covered - side.stride;
    } else {
      const std::size_t windows = (side.image + side.stride - 1) / side.stride;
      const std::size_t covered = (windows - 1) * side.stride + side.kernel;
      padding = covered - std::min(covered, side.image);
    }
    side.before = side.behind = padding / 2;
    (automatic == "SAME_UPPER" ? side.behind : side.before) += padding % 2;
    // Versions of ONNX differ in the side that gets more padding.
    if (is_transposed() && padding % 2 != 0) throw uneven(side);
  }

  void expect_padded_once(const Sides& sides, const Integers& pads) const {
    if (!node_.attributes.contains("pads")) return;
    if (pads == list_of(sides, {&Side::before, &Side::behind})) return;
    throw node_error(node_,
                     "says its padding twice, as auto_pad and as pads; export it with pads alone");
  }

  // Returns whether the layer must round up to have the windows of `sides`.
  [[nodiscard]] bool rounds_up_evenly(const Sides& sides, const std::string& automatic) const {
    const bool rounds_up = is_pool() && integer_attribute(node_, "ceil_mode", 0) == 1;
    const bool is_disputed =  // implementations disagree on the last window or its divisor
        automatic != "NOTSET" || integer_attribute(node_, "count_include_pad", 0) == 1;
    for (const Side& side : sides) {
      if (!rounds_up || !is_disputed || side.windows(true) == side.windows(false)) continue;
      throw node_error(node_,
                       "rounds up beside a padding that makes programs differ about its last "
                       "window; export it without ceil_mode");
    }
    const auto has_windows = [&](const Side& side, bool layer_rounds_up) {
      return side.windows_of_layer(layer_rounds_up) == side.windows(rounds_up);
    };
    const auto is_even = [&](bool layer_rounds_up) {
      return std::ranges::all_of(
          sides, [&](const Side& side) { return has_windows(side, layer_rounds_up); });
    };
    if (is_even(false)) return false;
    if (is_pool() && is_even(true)) return true;
    throw uneven(has_windows(sides[0], false) ? sides[1] : sides[0]);
  }

  // A layer cuts off as much at the end as at the beginning; extra output padding makes up for it.
  [[nodiscard]] Integers even_output_padding(const Sides& sides) const {
    Integers more;
    for (const Side& side : sides) {
      if (side.output_padding + side.before < side.behind) throw uneven(side);
      more.push_back(static_cast<std::int64_t>(side.output_padding + side.before - side.behind));
    }
    return more;
  }

  [[nodiscard]] um::Error uneven(const Side& side) const {
    return node_error(node_, "pads the " + std::string{side.name} + " by " +
                                 std::to_string(side.before) + " before and " +
                                 std::to_string(side.behind) +
                                 " behind, but layers pad both sides alike; give both the same "
                                 "padding where the network is made, and export it again");
  }

  static Integers list_of(const Sides& sides, std::array<std::size_t Side::*, 2> ends) {
    Integers list;
    for (const auto end : ends) {
      for (const Side& side : sides) list.push_back(static_cast<std::int64_t>(side.*end));
    }
    return list;
  }

  const OnnxNode& node_;
  const nets::Shape& image_;
  const std::optional<nets::Extent>& kernel_;
};

}  // namespace

std::optional<OnnxOperator> operator_of(const nets::Layer& layer) {
  std::optional<OnnxOperator> found;
  const auto try_entry = [&](const auto& own, const auto& entry) {
    if (!found) found = operator_by(entry, own);
  };
  std::visit(
      [&](const auto& own) {
        std::apply([&](const auto&... entry) { (try_entry(own, entry), ...); }, kLayerOperators);
      },
      layer);
  return found;
}

std::optional<nets::Layer> layer_of(const OnnxNode& node) {
  std::optional<nets::Layer> found;
  const auto read = [&](const auto& entry) {
    if (entry.type == node.type) found = layer_by(entry, node);
  };
  std::apply([&](const auto&... entry) { (read(entry), ...); }, kLayerOperators);
  return found;
}

OnnxNode with_even_padding(const OnnxNode& node, const nets::Shape& image,
                           const std::optional<nets::Extent>& kernel) {
  return NodePadding{node, image, kernel}.even();
}

}  // namespace spillway
