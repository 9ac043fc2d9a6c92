#include "nets/builder.h"

#include <utility>

#include "nets/layer_role.h"
#include "nets/shape_inference.h"
#include "um/error.h"

namespace spillway::nets {

Builder::Builder(std::string name, Shape image) : network_{.name = std::move(name)} {
  if (image.elements() == 0) {
    throw um::Error{"network " + network_.name + " cannot read images of " + to_string(image) +
                    "; channels, height and width must be at least 1"};
  }
  names_.insert("image");
  network_.nodes.push_back({.name = "image", .layer = {}, .inputs = {}, .output = image});
}

NodeId Builder::add(std::string name, Layer layer, std::vector<NodeId> inputs) {
  if (!names_.insert(name).second) {
    throw um::Error{"network " + network_.name + " has two layers named " + name +
                    "; give each layer a name of its own"};
  }
  std::vector<Shape> shapes;
  for (const NodeId input : inputs) {
    um::expects(static_cast<std::size_t>(input) < network_.nodes.size(), "inputs made before");
    shapes.push_back(network_[input].output);
  }
  const Shape output = infer_shape(name, layer, shapes);
  network_.nodes.push_back(
      {.name = std::move(name), .layer = layer, .inputs = std::move(inputs), .output = output});
  return NodeId{static_cast<std::uint32_t>(network_.nodes.size() - 1)};
}

Network Builder::build(NodeId logits) {
  add("loss", SoftmaxCrossEntropy{}, {logits});
  return finished();
}

Network Builder::build(NodeId x, VocabularyLoss loss, std::optional<NodeId> table,
                       std::string name) {
  std::vector<NodeId> inputs{x};
  if (table) inputs.push_back(*table);
  add(std::move(name), loss, std::move(inputs));
  return finished();
}

Network Builder::finished() {
  const LayerRoles roles{network_};
  for (const Node& node : network_.nodes) roles.expect(node);
  names_.clear();
  return std::exchange(network_, {});
}

}  // namespace spillway::nets
