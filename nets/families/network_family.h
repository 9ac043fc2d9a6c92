#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "nets/families/network_catalogue.h"

namespace spillway::nets {

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
