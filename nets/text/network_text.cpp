#include "nets/text/network_text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "nets/text/layer_text.h"
#include "nets/text/network_declaration.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

// A line, split into columns.
struct Row {
  std::string name;
  std::string kind;
  std::string rest;  // inputs and parameters
  std::string shape;
};

// Returns the inputs of a node, unless it reads just the node before it, then its parameters.
std::string rest_of(const Network& network, std::size_t index, const LayerText& text) {
  const std::vector<NodeId>& inputs = network.nodes[index].inputs;
  std::string rest;
  const auto append = [&](const std::string& word) { rest += (rest.empty() ? "" : " ") + word; };
  if (inputs.size() != 1 || static_cast<std::size_t>(inputs[0]) + 1 != index) {
    for (const NodeId input : inputs) append(network[input].name);
  }
  for (const LayerParameter& parameter : text.parameters) {
    append(parameter.word + "=" + parameter.value);
  }
  return rest;
}

// Returns `network` with one more class; itself if the number of classes is fixed, as in a user's
// file without the word `classes`.
Network twin_of(const Network& network, const CatalogueEntry& entry,
                const NetworkOptions& options) {
  NetworkOptions more = options;
  more.classes = network.classes() + 1;
  try {
    return build_network(entry, more);
  } catch (const um::Error&) {
    return network;
  }
}

std::vector<Row> rows_of(const Network& network, const Network& twin) {
  um::expects(network.nodes.size() == twin.nodes.size(), "layers do not depend on the classes");
  std::vector<Row> rows;
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    const Node& node = network.nodes[i];
    const LayerText text = to_text(node.layer, twin.nodes[i].layer);
    rows.push_back({.name = node.name,
                    .kind = text.kind,
                    .rest = rest_of(network, i, text),
                    .shape = to_string(node.output)});
  }
  return rows;
}

// Returns the width of a column: its longest text, up to a limit that longer texts may exceed.
std::size_t width_of(const std::vector<Row>& rows, std::string Row::*column) {
  constexpr std::size_t kWidest = 48;
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, (row.*column).size());
  return std::min(width, kWidest);
}

void append_column(std::string& line, const std::string& text, std::size_t width) {
  line += text;
  line.append(text.size() < width ? width - text.size() : 0, ' ');
  line += "  ";
}

}  // namespace

std::string to_text(const CatalogueEntry& entry, const NetworkOptions& options) {
  const Network network = build_network(entry, options);
  const std::vector<Row> rows = rows_of(network, twin_of(network, entry, options));
  std::string text = std::string{kNetworkFileFormat} + "\nname " + network.name + "\ndescription " +
                     entry.description + "\ninput " + to_string(network.input()) + "\nclasses " +
                     std::to_string(network.classes()) + "\n\n";
  const std::size_t name_width = width_of(rows, &Row::name);
  const std::size_t kind_width = width_of(rows, &Row::kind);
  const std::size_t rest_width = width_of(rows, &Row::rest);
  for (const Row& row : rows) {
    append_column(text, row.name, name_width);
    append_column(text, row.kind, kind_width);
    append_column(text, row.rest, rest_width);
    text += "# " + row.shape + "\n";
  }
  return text;
}

std::string to_text(const Network& network) {
  return std::string{kNetworkFileFormat} + "\nname " + network.name + "\ninput " +
         to_string(network.input()) + "\nclasses " + std::to_string(network.classes()) + "\n\n" +
         layers_text(network);
}

std::string layers_text(const Network& network) {
  std::string text;
  for (const Row& row : rows_of(network, network)) {
    text += row.name + " " + row.kind + " " + row.rest + " # " + row.shape + "\n";
  }
  return text;
}

}  // namespace spillway::nets
