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

/// One layer in its place: what it reads and the shape it makes. Names are unique in a network.
struct Node {
  std::string name;
  Layer layer;
  std::vector<NodeId> inputs;
  Shape output;
};

/// A network as data, in an order in which every node comes after its inputs. Node 0 is the image:
/// its `layer` is not looked at and it has no inputs. The last node is a loss, a
/// SoftmaxCrossEntropy or a VocabularyLoss; others of the former end auxiliary heads.
struct Network {
  std::string name;
  std::vector<Node> nodes;

  [[nodiscard]] const Node& operator[](NodeId id) const {
    return nodes[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Shape& input() const { return nodes.front().output; }
  [[nodiscard]] bool reads_text() const { return input().form == Form::kTokens; }
  [[nodiscard]] std::size_t classes() const { return nodes.back().output.channels; }
  /// The labels of an image, one for each position that the loss looks at: 1 x 1, or those of its
  /// pixels.
  [[nodiscard]] Extent labels() const {
    return {.height = nodes.back().output.height, .width = nodes.back().output.width};
  }
};

/// True for the losses, which no other layer reads.
[[nodiscard]] bool is_loss(const Layer& layer);

/// The Embedding whose table a VocabularyLoss has; nothing where it has one of its own, and of all
/// other nodes.
[[nodiscard]] std::optional<NodeId> table_of(const Node& node);

/// The inputs whose numbers the layer of `node` reads: without the one whose size a Crop takes, and
/// without the owner of a loss's table.
[[nodiscard]] std::span<const NodeId> read_by(const Node& node);

/// Gives each Dropout and each Attention this probability. Requires: at least 0 and less than 1.
void set_dropout(Network& network, float probability);
/// The probability that they all have; nothing where there are none, or they differ.
[[nodiscard]] std::optional<float> dropout_of(const Network& network);

/// The network without its auxiliary heads: the nodes that the last one needs. It is what is
/// evaluated.
[[nodiscard]] Network without_auxiliary_heads(const Network& network);

/// Trainable numbers of a network (batch norm's running statistics are not among them), or the
/// largest size_t where there are more.
[[nodiscard]] std::size_t count_parameters(const Network& network);
/// Those of the layer of `node`, one of its nodes.
[[nodiscard]] std::size_t count_parameters(const Network& network, const Node& node);

}  // namespace spillway::nets
