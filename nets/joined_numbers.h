#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::nets {

/// The whole numbers of "3x224x224" or "6,32,100,6", with `between` between them; nothing when
/// `text` is anything else, or a number is larger than `largest`.
[[nodiscard]] std::optional<std::vector<std::size_t>> joined_numbers(std::string_view text,
                                                                     char between,
                                                                     std::size_t largest);

}  // namespace spillway::nets
