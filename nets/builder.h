#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "nets/network.h"

namespace spillway::nets {

/// Builds a network layer by layer and infers every shape.
///
/// Each function adds a layer that reads `x`, and returns its id. Throws: um::Error that names the
/// layer and the shapes when the layer does not fit its inputs or its name is taken.
class Builder {
 public:
  Builder(std::string name, Shape image);

  /// Returns the node of the image.
  [[nodiscard]] NodeId input() const { return NodeId{0}; }

  NodeId add(std::string name, Layer layer, std::vector<NodeId> inputs);

  NodeId convolution(std::string name, NodeId x, Convolution layer) {
    return add(std::move(name), layer, {x});
  }
  NodeId transposed_convolution(std::string name, NodeId x, TransposedConvolution layer) {
    return add(std::move(name), layer, {x});
  }
  NodeId batch_norm(std::string name, NodeId x, BatchNorm layer = {}) {
    return add(std::move(name), layer, {x});
  }
  NodeId relu(std::string name, NodeId x) { return add(std::move(name), Relu{}, {x}); }
  NodeId pool(std::string name, NodeId x, Pool layer) { return add(std::move(name), layer, {x}); }
  NodeId global_average_pool(std::string name, NodeId x) {
    return add(std::move(name), GlobalAveragePool{}, {x});
  }
  NodeId local_response_norm(std::string name, NodeId x, LocalResponseNorm layer) {
    return add(std::move(name), layer, {x});
  }
  NodeId linear(std::string name, NodeId x, Linear layer) {
    return add(std::move(name), layer, {x});
  }
  NodeId dropout(std::string name, NodeId x, Dropout layer) {
    return add(std::move(name), layer, {x});
  }
  NodeId sum(std::string name, NodeId a, NodeId b) { return add(std::move(name), Add{}, {a, b}); }
  NodeId concat(std::string name, std::vector<NodeId> parts) {
    return add(std::move(name), Concat{}, std::move(parts));
  }
  /// Crops `x` to the height and width of `like`.
  NodeId crop(std::string name, NodeId x, NodeId like, Crop layer = {}) {
    return add(std::move(name), layer, {x, like});
  }
  NodeId flatten(std::string name, NodeId x) { return add(std::move(name), Flatten{}, {x}); }

  /// Ends an auxiliary head with a loss of weight `weight`. Requires: `logits` has the same
  /// positions as the logits of build().
  NodeId auxiliary_loss(std::string name, NodeId logits, float weight) {
    return add(std::move(name), SoftmaxCrossEntropy{.weight = weight}, {logits});
  }

  [[nodiscard]] const Shape& shape(NodeId id) const { return network_[id].output; }

  /// Adds the loss on `logits` and returns the network. The builder is empty afterwards.
  [[nodiscard]] Network build(NodeId logits);
  /// As above, with a loss over a vocabulary on the tokens `x`. `table` is an Embedding; without
  /// one, the loss has its own table.
  [[nodiscard]] Network build(NodeId x, VocabularyLoss loss, std::optional<NodeId> table,
                              std::string name = "loss");

 private:
  [[nodiscard]] Network finished();

  Network network_;
  std::unordered_set<std::string> names_;
};

}  // namespace spillway::nets
