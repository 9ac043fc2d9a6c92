#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nets/layer.h"
#include "nets/shape.h"

namespace spillway::nets {

enum class NodeId : std::uint32_t {};

/// A layer in its network, with its inputs and output shape. Names are unique in a network.
struct Node {
  std::string name;
  Layer layer;
  std::vector<NodeId> inputs;
  Shape output;
};

/// A network as data; every node comes after its inputs. Node 0 is the image: it has no inputs, and
/// its `layer` is ignored. The last node is a SoftmaxCrossEntropy or a VocabularyLoss. Other
/// SoftmaxCrossEntropy nodes end auxiliary heads.
struct Network {
  std::string name;
  std::vector<Node> nodes;

  [[nodiscard]] const Node& operator[](NodeId id) const {
    return nodes[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Shape& input() const { return nodes.front().output; }
  [[nodiscard]] bool reads_text() const { return input().form == Form::kTokens; }
  [[nodiscard]] std::size_t classes() const { return nodes.back().output.channels; }
  /// The labels of an image, one per position of the loss: 1 x 1, or one per pixel.
  [[nodiscard]] Extent labels() const {
    return {.height = nodes.back().output.height, .width = nodes.back().output.width};
  }
};

/// Returns whether the layer is a loss, which no other layer reads.
[[nodiscard]] bool is_loss(const Layer& layer);

/// Returns the Embedding that shares its table with a VocabularyLoss. Returns nullopt if the loss
/// has its own table, and for all other nodes.
[[nodiscard]] std::optional<NodeId> table_of(const Node& node);

/// Returns the inputs that the layer of `node` reads. Omits a Crop's size input and the Embedding
/// that lends a loss its table.
[[nodiscard]] std::span<const NodeId> read_by(const Node& node);

/// Sets the probability of each Dropout and Attention. Requires: at least 0 and less than 1.
void set_dropout(Network& network, float probability);
/// Returns the common dropout probability; nullopt when there is none or they differ.
[[nodiscard]] std::optional<float> dropout_of(const Network& network);

/// Returns the network to evaluate: without auxiliary heads, only the nodes that the last node
/// needs.
[[nodiscard]] Network without_auxiliary_heads(const Network& network);

/// Returns the number of trainable weights, without batch norm's running statistics, or the largest
/// size_t if there are more.
[[nodiscard]] std::size_t count_parameters(const Network& network);
/// Returns the number of trainable weights of `node`, a node of the network.
[[nodiscard]] std::size_t count_parameters(const Network& network, const Node& node);

}  // namespace spillway::nets
