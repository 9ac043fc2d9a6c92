#pragma once

#include <istream>
#include <string>

#include "nets/families/network_catalogue.h"

namespace spillway::nets {

/// The most elements of all outputs for one image in a network from a file, and the most
/// parameters: 4 TiB each.
inline constexpr std::size_t kMaxElements = 1ULL << 40U;

/// Reads a user's network as a catalogue entry. `build` infers its shapes for an image of any
/// height and width, and replaces the word `classes` by any number of classes. It throws um::Error
/// that names the file, the line and the layer when a shape does not fit. Throws: um::Error, too,
/// when the text is wrong (read_declaration()) or cannot be read.
[[nodiscard]] CatalogueEntry read_network(std::istream& text, const std::string& file);
[[nodiscard]] CatalogueEntry read_network_file(const std::string& path);

/// Returns whether `name_or_path` means a file: it has a '/', ends in ".net" or ".onnx", or names
/// an existing file but not a built-in network. open_network() does not read ".onnx"; src/io/onnx
/// does.
[[nodiscard]] bool is_network_file(const std::string& name_or_path);

/// Opens a built-in network or a network file. Throws: like find_network() and read_network_file().
[[nodiscard]] CatalogueEntry open_network(const std::string& name_or_path);

/// Returns the network of `entry` as the text of a network file (README.md). `options` may change
/// the image and the classes and add auxiliary heads. Writes `classes` for numbers that depend on
/// the number of classes. Each layer is followed by its output shape as a comment. read_network()
/// restores the same network. Throws: like build_network().
[[nodiscard]] std::string to_text(const CatalogueEntry& entry, const NetworkOptions& options = {});

/// Returns `network` as the text of a network file, with plain numbers instead of `classes`.
/// read_network() restores the same network.
[[nodiscard]] std::string to_text(const Network& network);

/// Returns only the layers of `network`, one per line: names, parameters, inputs and shapes.
/// Networks for equal images have the same text only if they compute the same.
[[nodiscard]] std::string layers_text(const Network& network);

}  // namespace spillway::nets
