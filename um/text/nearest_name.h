#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::um {

/// The one of `names` that `wrong` is likely to mean: equal but for case and punctuation, or but
/// for a few letters. Nothing where no name is that close.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view wrong,
                                                      std::span<const std::string> names);

}  // namespace spillway::um
