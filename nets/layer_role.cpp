#include "nets/layer_role.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "um/error.h"

namespace spillway::nets {
namespace {

// Checks one layer's role in its network.
class Role {
 public:
  Role(const Network& network, const Node& node, const std::vector<bool>& is_read,
       const std::vector<bool>& is_trained)
      : network_{network}, node_{node}, is_read_{is_read}, is_trained_{is_trained} {}

  void operator()(const VocabularyLoss& loss) const {
    refuse_unless(&node_ == &network_.nodes.back(),
                  "is not the last layer, which such a loss has to be");
    const std::optional<NodeId> table = table_of(node_);
    if (!table) return;
    const Node& owner = network_[*table];
    const auto* const embedding = std::get_if<Embedding>(&owner.layer);
    refuse_unless(
        !owner.inputs.empty() && embedding != nullptr && embedding->vocabulary == loss.vocabulary,
        "takes its table from " + owner.name + ", which is no embedding of " +
            std::to_string(loss.vocabulary) + " tokens");
    refuse_unless(is_read_[static_cast<std::size_t>(*table)],
                  "takes its table from " + owner.name +
                      ", whose tokens no layer reads; without that name it has a table of its own");
  }

  void operator()(const SoftmaxCrossEntropy& /*loss*/) const {
    const Node& last = network_.nodes.back();
    refuse_unless(!std::holds_alternative<VocabularyLoss>(last.layer),
                  "cannot stand beside layer " + last.name + " (" + to_string(last.layer) +
                      "), whose labels are one for each token");
    const bool has_labels =
        node_.output.height == last.output.height && node_.output.width == last.output.width;
    refuse_unless(has_labels, "reads " + to_string(node_.output) + ", but the last loss " +
                                  to_string(last.output) +
                                  "; give all losses the same height and width");
    refuse_unless(node_.output.channels >= network_.classes(),
                  "tells " + std::to_string(node_.output.channels) +
                      " classes apart, but the last loss " + std::to_string(network_.classes()));
  }

  void operator()(const Embedding& embedding) const {
    refuse_unless(embedding.vocabulary >= network_.classes(),
                  "knows fewer tokens than the network's vocabulary of " +
                      std::to_string(network_.classes()));
  }

  // Otherwise backpropagation would reach a layer without a gradient.
  void operator()(const Crop& /*crop*/) const {
    const NodeId like = node_.inputs[1];
    refuse_unless(
        is_read_[static_cast<std::size_t>(like)] || !is_trained_[static_cast<std::size_t>(like)],
        "takes the size of " + network_[like].name +
            ", whose numbers no layer reads, so that nothing would train it; name a layer "
            "that another one reads, or one of the same size without weights");
  }

  template <typename Other>
  void operator()(const Other& /*layer*/) const {}

 private:
  void refuse_unless(bool fits, const std::string& why) const {
    if (fits) return;
    throw um::Error{"layer " + node_.name + " (" + to_string(node_.layer) + ") " + why};
  }

  const Network& network_;
  const Node& node_;
  const std::vector<bool>& is_read_;
  const std::vector<bool>& is_trained_;
};

}  // namespace

LayerRoles::LayerRoles(const Network& network)
    : network_{network}, is_read_(network.nodes.size()), is_trained_(network.nodes.size()) {
  for (std::size_t i = 0; i < network.nodes.size(); ++i) {
    const Node& node = network.nodes[i];
    bool is_trained = count_parameters(network, node) > 0;
    for (const NodeId input : read_by(node)) {
      is_read_[static_cast<std::size_t>(input)] = true;
      is_trained = is_trained || is_trained_[static_cast<std::size_t>(input)];
    }
    is_trained_[i] = is_trained;
  }
}

void LayerRoles::expect(const Node& node) const {
  if (node.inputs.empty()) return;  // the image
  std::visit(Role{network_, node, is_read_, is_trained_}, node.layer);
}

std::vector<std::string> residual_norms(const Network& network) {
  const auto index_of = [](NodeId node) { return static_cast<std::size_t>(node); };
  // By node: layers on the longest path from the image, and how often layers read it.
  std::vector<std::size_t> depths;
  std::vector<std::size_t> readers(network.nodes.size());
  for (const Node& node : network.nodes) {
    std::size_t depth = 0;
    for (const NodeId input : node.inputs) {
      depth = std::max(depth, depths[index_of(input)] + 1);
      ++readers[index_of(input)];
    }
    depths.push_back(depth);
  }
  std::vector<std::string> names;
  for (const Node& node : network.nodes) {
    if (!std::holds_alternative<Add>(node.layer)) continue;
    const NodeId deepest = *std::ranges::max_element(
        node.inputs, {}, [&](NodeId input) { return depths[index_of(input)]; });
    const Node& last = network[deepest];
    if (!std::holds_alternative<BatchNorm>(last.layer)) continue;
    if (readers[index_of(deepest)] == 1) names.push_back(last.name);
  }
  return names;
}

}  // namespace spillway::nets
