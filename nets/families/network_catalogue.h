#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nets/network.h"

namespace spillway::nets {

/// What a user may change of a built-in network.
struct NetworkOptions {
  std::optional<Shape> image;          ///< default: the catalogue entry's
  std::optional<std::size_t> classes;  ///< default: the catalogue entry's; of texts, the vocabulary
  std::optional<float> dropout;        ///< default: the network's (set_dropout())
  bool auxiliary_heads = false;        ///< with the losses on the way that its paper trains with
};

/// A built-in network, by the name users type.
struct CatalogueEntry {
  std::string name;
  std::string description;  ///< one line: "ResNet with bottlenecks, 50 layers (He et al., 2015)"
  Shape image;              ///< default image
  std::size_t classes;      ///< default number of classes
  std::function<Network(const Shape& image, std::size_t classes)> build;
  /// With auxiliary heads, by the name "googlenet+aux-heads"; empty where there are none.
  std::function<Network(const Shape& image, std::size_t classes)> build_with_heads = nullptr;
};

/// All built-in networks that have a name of their own, in the order in which they are listed.
[[nodiscard]] std::span<const CatalogueEntry> catalogue();

/// The entry of `name`: one of the catalogue's, or a member of a family, whose depths the name
/// says: "resnet:6,32,100,6", "vgg:2,22,66,4,4". Throws: um::Error that lists the names there are,
/// or says how a family's are spelt.
[[nodiscard]] CatalogueEntry find_network(std::string_view name);

/// Builds the network `name`. Throws: um::Error for an unknown name, an image too small for the
/// network, or auxiliary heads where it has none.
[[nodiscard]] Network build_network(std::string_view name, const NetworkOptions& options = {});
/// Builds the network of `entry`. Throws: likewise.
[[nodiscard]] Network build_network(const CatalogueEntry& entry,
                                    const NetworkOptions& options = {});

}  // namespace spillway::nets
