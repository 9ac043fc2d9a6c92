#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "nets/layer.h"

namespace spillway::nets {

/// A hyper-parameter of layer `L` and its name in network files.
template <typename L, typename T>
struct LayerField {
  std::string_view word;
  T L::*member;
  bool has_default;  ///< a default in layer.h, which files leave out
};

template <typename L, typename T>
[[nodiscard]] constexpr LayerField<L, T> required(std::string_view word, T L::*member) {
  return {.word = word, .member = member, .has_default = false};
}

template <typename L, typename T>
[[nodiscard]] constexpr LayerField<L, T> with_default(std::string_view word, T L::*member) {
  return {.word = word, .member = member, .has_default = true};
}

/// The allowed number of a layer's inputs.
struct InputCount {
  std::size_t min = 1;
  std::size_t max = 1;
};
inline constexpr InputCount kOneInput{};
inline constexpr InputCount kOneOrTwoInputs{.min = 1, .max = 2};
inline constexpr InputCount kTwoInputs{.min = 2, .max = 2};
inline constexpr InputCount kSeveralInputs{.min = 2, .max = SIZE_MAX};

/// A kind of layer and its name in network files.
template <typename L, typename... T>
struct LayerKind {
  using Type = L;
  static constexpr std::size_t kFields = sizeof...(T);

  std::string_view word;
  InputCount inputs;
  std::tuple<LayerField<L, T>...> fields;
};

template <typename L, typename... T>
[[nodiscard]] constexpr LayerKind<L, T...> layer_kind(std::string_view word, InputCount inputs,
                                                      LayerField<L, T>... fields) {
  return {.word = word, .inputs = inputs, .fields = {fields...}};
}

/// The names of an enumeration's values, in order.
template <typename Enumeration>
inline constexpr std::tuple<> kWordsOf{};
template <>
inline constexpr std::array<std::string_view, 2> kWordsOf<PoolKind>{"max", "average"};

/// Every layer and its fields as network files spell them, in the order of Layer. The file code
/// knows layers only from here: add an entry for a new layer, a line for a new field.
inline constexpr std::tuple kLayerKinds{
    layer_kind<Convolution>("convolution", kOneInput,                        //
                            required("channels", &Convolution::channels),    //
                            with_default("kernel", &Convolution::kernel),    //
                            with_default("stride", &Convolution::stride),    //
                            with_default("padding", &Convolution::padding),  //
                            with_default("bias", &Convolution::bias),        //
                            with_default("dilation", &Convolution::dilation),
                            with_default("groups", &Convolution::groups)),
    layer_kind<TransposedConvolution>(
        "transposed-convolution", kOneInput,                         //
        required("channels", &TransposedConvolution::channels),      //
        with_default("kernel", &TransposedConvolution::kernel),      //
        with_default("stride", &TransposedConvolution::stride),      //
        with_default("padding", &TransposedConvolution::padding),    //
        with_default("bias", &TransposedConvolution::bias),          //
        with_default("dilation", &TransposedConvolution::dilation),  //
        with_default("groups", &TransposedConvolution::groups),      //
        with_default("output-padding", &TransposedConvolution::output_padding)),
    layer_kind<BatchNorm>("batch-norm", kOneInput,                       //
                          with_default("epsilon", &BatchNorm::epsilon),  //
                          with_default("momentum", &BatchNorm::momentum)),
    layer_kind<Relu>("relu", kOneInput),
    layer_kind<Pool>("pool", kOneInput,                                      //
                     with_default("kind", &Pool::kind),                      //
                     with_default("kernel", &Pool::kernel),                  //
                     with_default("stride", &Pool::stride),                  //
                     with_default("padding", &Pool::padding),                //
                     with_default("counts-padding", &Pool::counts_padding),  //
                     with_default("rounds-up", &Pool::rounds_up)),
    layer_kind<GlobalAveragePool>("global-average-pool", kOneInput),
    layer_kind<LocalResponseNorm>("local-response-norm", kOneInput,                //
                                  with_default("size", &LocalResponseNorm::size),  //
                                  with_default("alpha", &LocalResponseNorm::alpha),
                                  with_default("beta", &LocalResponseNorm::beta),  //
                                  with_default("k", &LocalResponseNorm::k)),
    layer_kind<Linear>("linear", kOneInput,                      //
                       required("features", &Linear::features),  //
                       with_default("bias", &Linear::bias)),
    layer_kind<Dropout>("dropout", kOneInput,  //
                        with_default("probability", &Dropout::probability)),
    layer_kind<Add>("add", kTwoInputs),
    layer_kind<Concat>("concat", kSeveralInputs),
    layer_kind<Crop>("crop", kTwoInputs,                          //
                     with_default("centred", &Crop::is_centred),  //
                     with_default("offset", &Crop::offset)),
    layer_kind<Flatten>("flatten", kOneInput),
    layer_kind<SoftmaxCrossEntropy>("softmax-cross-entropy", kOneInput,  //
                                    with_default("weight", &SoftmaxCrossEntropy::weight)),
    layer_kind<Gelu>("gelu", kOneInput, with_default("tanh", &Gelu::tanh)),
    layer_kind<Embedding>("embedding", kOneInput,                          //
                          required("vocabulary", &Embedding::vocabulary),  //
                          required("features", &Embedding::features)),
    layer_kind<PositionEmbedding>("position-embedding", kOneInput,                           //
                                  with_default("positions", &PositionEmbedding::positions),  //
                                  with_default("segments", &PositionEmbedding::segments)),
    layer_kind<LayerNorm>("layer-norm", kOneInput, with_default("epsilon", &LayerNorm::epsilon)),
    layer_kind<RmsNorm>("rms-norm", kOneInput, with_default("epsilon", &RmsNorm::epsilon)),
    layer_kind<Swiglu>("swiglu", kOneInput),
    layer_kind<Rotary>("rotary", kOneInput,                          //
                       required("heads", &Rotary::heads),            //
                       with_default("kv-heads", &Rotary::kv_heads),  //
                       with_default("base", &Rotary::base)),
    layer_kind<Attention>("attention", kOneInput,                          //
                          required("heads", &Attention::heads),            //
                          with_default("kv-heads", &Attention::kv_heads),  //
                          with_default("causal", &Attention::causal),      //
                          with_default("dropout", &Attention::dropout)),
    layer_kind<ImageTokens>("image-tokens", kOneInput,
                            with_default("class-token", &ImageTokens::class_token)),
    layer_kind<FirstToken>("first-token", kOneInput),
    layer_kind<VocabularyLoss>("vocabulary-loss", kOneOrTwoInputs,                   //
                               required("vocabulary", &VocabularyLoss::vocabulary),  //
                               with_default("bias", &VocabularyLoss::bias))};

/// Returns the entry of layer `L`.
template <typename L>
[[nodiscard]] constexpr const auto& kind_of() {
  constexpr auto kFind = []<typename... Kind>(const std::tuple<Kind...>& /*kinds*/) {
    std::size_t index = 0;
    static_cast<void>(((std::is_same_v<typename Kind::Type, L> || (++index, false)) || ...));
    return index;
  };
  return std::get<kFind(kLayerKinds)>(kLayerKinds);
}

/// Returns how many inputs `layer` has.
[[nodiscard]] inline InputCount input_count(const Layer& layer) {
  return std::visit([]<typename L>(const L& /*own*/) { return kind_of<L>().inputs; }, layer);
}

/// Calls `visit` with each entry.
template <typename Visit>
constexpr void for_each_kind(Visit visit) {
  std::apply([&](const auto&... kind) { (visit(kind), ...); }, kLayerKinds);
}

/// Calls `visit` with each field of a kind.
template <typename Kind, typename Visit>
constexpr void for_each_field(const Kind& kind, Visit visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, kind.fields);
}

/// Checks that kLayerKinds covers all of layer.h.
namespace coverage {

struct Anything {
  template <typename T>
  constexpr operator T() const;  // declared only: the compiler counts with it
};

template <typename L, typename... Field>
constexpr std::size_t count_fields() {
  if constexpr (requires { L{Field{}..., Anything{}}; }) {
    return count_fields<L, Field..., Anything>();
  } else {
    return sizeof...(Field);
  }
}

template <typename... L>
constexpr bool has_every_field(const std::variant<L...>* /*layer*/) {
  return ((kind_of<L>().kFields == count_fields<L>()) && ...);
}

static_assert(std::tuple_size_v<decltype(kLayerKinds)> == std::variant_size_v<Layer>,
              "every layer of layer.h has an entry in kLayerKinds");
static_assert(has_every_field(static_cast<const Layer*>(nullptr)),
              "every field of a layer has a line in kLayerKinds");

}  // namespace coverage
}  // namespace spillway::nets
