#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nets/network.h"

namespace spillway::nets {

/// Settings of a built-in network that a user may change.
struct NetworkOptions {
  std::optional<Shape> image;          ///< default: the catalogue entry's
  std::optional<std::size_t> classes;  ///< default: the catalogue entry's; texts: vocabulary
  std::optional<float> dropout;        ///< default: the network's (set_dropout())
  bool auxiliary_heads = false;        ///< with the auxiliary losses of its paper
};

/// A built-in network under the name that users type.
struct CatalogueEntry {
  std::string name;
  std::string description;  ///< one line: "ResNet with bottlenecks, 50 layers (He et al., 2015)"
  Shape image;              ///< default image
  std::size_t classes;      ///< default number of classes
  std::function<Network(const Shape& image, std::size_t classes)> build;
  /// Builds with auxiliary heads, as "googlenet+aux-heads"; empty if the network has none.
  std::function<Network(const Shape& image, std::size_t classes)> build_with_heads = nullptr;
};

/// Returns all built-in networks with a name of their own, in listing order.
[[nodiscard]] std::span<const CatalogueEntry> catalogue();

/// Returns the entry of `name`: from the catalogue, or a family member with its depths in the name
/// ("resnet:6,32,100,6", "vgg:2,22,66,4,4"). Throws: um::Error that lists the known names or
/// explains the spelling of a family's names.
[[nodiscard]] CatalogueEntry find_network(std::string_view name);

/// Builds the network `name`. Throws: um::Error when the name is unknown, the image is too small,
/// or the network has no auxiliary heads.
[[nodiscard]] Network build_network(std::string_view name, const NetworkOptions& options = {});
/// Builds the network of `entry`. Throws: as above.
[[nodiscard]] Network build_network(const CatalogueEntry& entry,
                                    const NetworkOptions& options = {});

/// Networks of one kind with their sizes given in the name.
struct NetworkFamily {
  std::string_view prefix;   ///< "resnet:"
  std::string_view form;     ///< "resnet:n1,n2,n3,n4"
  std::string_view example;  ///< "resnet:6,32,100,6"
  std::string_view what;     ///< meaning of the numbers: "bottlenecks in each of its 4 stages"
  std::size_t numbers;       ///< count of numbers
  std::size_t largest;       ///< largest allowed number
};

/// Returns all families in listing order.
[[nodiscard]] std::span<const NetworkFamily> network_families();

/// Returns the family member called `name`; nullopt when `name` has no family's prefix. Throws:
/// um::Error when the prefix matches but the numbers are wrong.
[[nodiscard]] std::optional<CatalogueEntry> find_in_families(std::string_view name);

}  // namespace spillway::nets
