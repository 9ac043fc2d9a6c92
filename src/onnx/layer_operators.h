#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "nets/layer.h"

namespace spillway {

/// How an attribute of an operator says a hyper-parameter of a layer.
enum class AttributeForm : std::uint8_t {
  kPlain,      ///< a kernel of 2x3 as [2, 3], yes as 1
  kBothSides,  ///< a padding of 2x3 as [2, 3, 2, 3]
  kComplement  ///< a momentum of 0.1 as 0.9
};

/// A hyper-parameter of the layer `L`, by the word of ONNX for it.
template <typename L, typename T>
struct BoundAttribute {
  std::string_view word;
  T L::*member;
  AttributeForm form = AttributeForm::kPlain;
};

/// An attribute that must have one value, since layers have no other: 1, or a list of ones.
struct FixedAttribute {
  std::string_view word;
  std::int64_t value;
  bool is_written = false;  ///< in files; otherwise ONNX takes it for granted
};

/// An operator that does what a layer does, and no more.
template <typename L, typename... A>
struct LayerOperator {
  using Type = L;
  std::string_view type;
  L start;  ///< with the hyper-parameters that ONNX takes where attributes are left out
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

/// Where a window stands still unless an attribute says otherwise.
inline constexpr nets::Extent kStill = nets::square(1);

/// Which operator is which layer, both ways: files are written and read by this table. Layers that
/// are not here are several operators (sequence_operators.h), and are only written.
inline constexpr std::tuple kLayerOperators{
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

}  // namespace spillway
