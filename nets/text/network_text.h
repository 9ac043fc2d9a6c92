#pragma once

#include <string>

#include "nets/families/network_catalogue.h"

namespace spillway::nets {

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
