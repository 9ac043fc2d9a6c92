#include "nets/layer.h"

namespace spillway::nets {
namespace {

std::string across(const Extent& extent) {
  return std::to_string(extent.height) + "x" + std::to_string(extent.width);
}

// Returns ", stride 2", or both numbers if they differ.
std::string labelled(const std::string& label, const Extent& extent) {
  return ", " + label + " " +
         (extent.height == extent.width ? std::to_string(extent.height) : across(extent));
}

std::string padding(const Extent& extent) {
  return extent == square(0) ? "" : labelled("padding", extent);
}

std::string unless_one(const std::string& label, const Extent& extent) {
  return extent == square(1) ? "" : labelled(label, extent);
}

std::string groups(std::size_t count) {
  return count == 1 ? "" : ", " + std::to_string(count) + " groups";
}

template <class Headed>
std::string heads(const Headed& layer) {
  const std::size_t keys = key_heads(layer);
  std::string all = std::to_string(layer.heads) + (layer.heads == 1 ? " head" : " heads");
  if (keys == layer.heads) return all;
  return all + " that share " + std::to_string(keys) + (keys == 1 ? " key head" : " key heads");
}

struct Text {
  std::string operator()(const Convolution& layer) const {
    return "convolution " + across(layer.kernel) + ", " + std::to_string(layer.channels) +
           " channels" + unless_one("stride", layer.stride) + padding(layer.padding) +
           unless_one("dilation", layer.dilation) + groups(layer.groups);
  }
  std::string operator()(const TransposedConvolution& layer) const {
    return "transposed convolution " + across(layer.kernel) + ", " +
           std::to_string(layer.channels) + " channels" + unless_one("stride", layer.stride) +
           padding(layer.padding) + unless_one("dilation", layer.dilation) + groups(layer.groups) +
           (layer.output_padding == square(0) ? ""
                                              : labelled("output padding", layer.output_padding));
  }
  std::string operator()(const BatchNorm& /*layer*/) const { return "batch norm"; }
  template <class Plain>
  requires requires { Plain::kText; }
  std::string operator()(const Plain& /*layer*/) const { return std::string{Plain::kText}; }
  std::string operator()(const Pool& layer) const {
    return (layer.kind == PoolKind::kMax ? "max pool " : "average pool ") + across(layer.kernel) +
           labelled("stride", layer.stride) + padding(layer.padding) +
           (layer.counts_padding ? " counted" : "") + (layer.rounds_up ? ", rounding up" : "");
  }
  std::string operator()(const LocalResponseNorm& layer) const {
    return "local response norm over " + std::to_string(layer.size) + " channels";
  }
  std::string operator()(const GlobalAveragePool& /*layer*/) const { return "global average pool"; }
  std::string operator()(const Linear& layer) const {
    return "linear, " + std::to_string(layer.features) + " features";
  }
  std::string operator()(const Dropout& /*layer*/) const { return "dropout"; }
  std::string operator()(const Add& /*layer*/) const { return "add"; }
  std::string operator()(const Concat& /*layer*/) const { return "concat"; }
  std::string operator()(const Crop& layer) const {
    return layer.is_centred ? "centred crop" : "crop" + labelled("offset", layer.offset);
  }
  std::string operator()(const Flatten& /*layer*/) const { return "flatten"; }
  std::string operator()(const Embedding& layer) const {
    return "embedding of " + std::to_string(layer.vocabulary) + " tokens, " +
           std::to_string(layer.features) + " features";
  }
  std::string operator()(const PositionEmbedding& layer) const {
    return "embedding of " +
           (layer.positions == 0 ? std::string{"all"} : std::to_string(layer.positions)) +
           " positions";
  }
  std::string operator()(const Rotary& layer) const {
    return "rotary positions of " + heads(layer);
  }
  std::string operator()(const Attention& layer) const {
    return (layer.causal ? "causal attention, " : "attention, ") + heads(layer);
  }
  std::string operator()(const VocabularyLoss& layer) const {
    return "loss over a vocabulary of " + std::to_string(layer.vocabulary);
  }
  std::string operator()(const SoftmaxCrossEntropy& layer) const {
    std::string weight;
    if (layer.weight != 1) {
      weight = std::to_string(layer.weight);
      weight.erase(weight.find_last_not_of('0') + 1);
      weight = ", weight " + weight;
    }
    return "softmax cross-entropy" + weight;
  }
};

}  // namespace

std::string to_string(const Layer& layer) { return std::visit(Text{}, layer); }

}  // namespace spillway::nets
