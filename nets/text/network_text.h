#pragma once

#include <string>

#include "nets/families/network_catalogue.h"

namespace spillway::nets {

/// `entry`'s network as the text of a network file (README.md), for an image and classes of other
/// than the entry's, and with auxiliary heads, where `options` say so. Where the number of classes
/// decides a number of a layer, the text says `classes`. Behind each layer stands, as a comment,
/// the shape it makes. read_network() gives the same network again. Throws: as build_network()
/// does.
[[nodiscard]] std::string to_text(const CatalogueEntry& entry, const NetworkOptions& options = {});

/// The text of a network file for `network` itself, with numbers wherever the classes decide one.
/// read_network() gives the same network again.
[[nodiscard]] std::string to_text(const Network& network);

/// The layers of `network` alone, a line each: names, parameters, what each reads and makes. Two
/// networks for equal images have the same text only if they compute the same.
[[nodiscard]] std::string layers_text(const Network& network);

}  // namespace spillway::nets
