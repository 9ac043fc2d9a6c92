#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nets/network.h"

namespace spillway::golden {

/// A network of each family with images of about the smallest size at which the last layers still
/// see more than one pixel of some image: batch norms of very few numbers are chaotic.
[[nodiscard]] std::vector<std::string> family_network_names();

/// One of these, for 10 classes. Requires: `name` is one of family_network_names().
[[nodiscard]] nets::Network family_network(std::string_view name);

/// The same as the text of a network file.
[[nodiscard]] std::string family_network_text(std::string_view name);

}  // namespace spillway::golden
