#pragma once

#include <istream>
#include <string>

#include "nets/families/network_catalogue.h"

namespace spillway::nets {

/// The most numbers that all outputs of a network from a file may have together, for one image, and
/// the most parameters: 4 TiB, each.
inline constexpr std::size_t kMaxElements = 1ULL << 40U;

/// A user's own network, as the catalogue has the built-in ones: `build` infers its shapes anew for
/// an image of any height and width, and puts any number of classes where the text says `classes`.
/// Then a shape that does not fit is an um::Error that names the file, the line and the layer.
/// Throws: um::Error likewise when the text is wrong (read_declaration()) or cannot be read.
[[nodiscard]] CatalogueEntry read_network(std::istream& text, const std::string& file);
[[nodiscard]] CatalogueEntry read_network_file(const std::string& path);

/// True when `name_or_path` means a file: it has a '/', ends in ".net" or ".onnx" (which
/// open_network() does not read: src/onnx does), or is the name of a file and of no built-in
/// network.
[[nodiscard]] bool is_network_file(const std::string& name_or_path);

/// A built-in network or one from a file. Throws: as find_network() and read_network_file() do.
[[nodiscard]] CatalogueEntry open_network(const std::string& name_or_path);

}  // namespace spillway::nets
