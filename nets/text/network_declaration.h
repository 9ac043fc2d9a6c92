#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nets/network.h"
#include "nets/text/layer_text.h"
#include "nets/text/text_lines.h"

namespace spillway::nets {

/// A line of a network file that declares a layer.
struct LayerLine {
  std::size_t number = 0;  ///< in its file
  std::string name;
  LayerText text;
  std::vector<NodeId> inputs;
};

/// What a network file says, before shapes are inferred.
struct NetworkDeclaration {
  std::string file;
  std::string name;
  std::string description;
  Shape image;
  std::size_t classes = 0;
  std::vector<LayerLine> layers;

  /// `complaint` about a line: "my.net:12: " and what it says.
  [[nodiscard]] um::Error error(const LayerLine& line, const std::string& complaint) const {
    return um::Error{file + ":" + std::to_string(line.number) + ": " + complaint};
  }
};

/// Reads a network file (README.md says how it is written). Every layer is one that there is, with
/// parameters that it takes; it reads as many layers as it must, all before it; every layer but the
/// last is read, and that one is the loss.
/// Throws: um::Error that names the file, the line and the layer when that is not so.
[[nodiscard]] NetworkDeclaration read_declaration(TextLines& lines);

/// The first line of each network file.
inline constexpr const char* kNetworkFileFormat = "spillway-network 1";

}  // namespace spillway::nets
