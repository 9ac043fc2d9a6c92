#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "nets/families/network_catalogue.h"

namespace spillway::nets {

/// Networks of one kind that differ in the sizes that their names say.
struct NetworkFamily {
  std::string_view prefix;   ///< "resnet:"
  std::string_view form;     ///< "resnet:n1,n2,n3,n4"
  std::string_view example;  ///< "resnet:6,32,100,6"
  std::string_view what;     ///< what the numbers are: "bottlenecks in each of its 4 stages"
  std::size_t numbers;       ///< how many
  std::size_t largest;       ///< that a number may be
};

/// All families, in the order in which they are listed.
[[nodiscard]] std::span<const NetworkFamily> network_families();

/// The member of a family that `name` is; nothing where it has no family's prefix. Throws:
/// um::Error when the name has one, but not the depths that belong there.
[[nodiscard]] std::optional<CatalogueEntry> find_in_families(std::string_view name);

}  // namespace spillway::nets
