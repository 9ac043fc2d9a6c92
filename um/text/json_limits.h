#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::um {

/// What a JSON document may be made of: a parser takes a hundred times the memory of a text that is
/// all brackets, and its stack grows with their depth.
struct JsonLimits {
  std::size_t depth = 64;           ///< arrays and objects in each other
  std::size_t values = 10'000'000;  ///< at the most about 1 GB, parsed
};

/// Why `text` is not to be parsed, as half a sentence; nothing when it is within `limits`. Need not
/// be JSON: says nothing about other mistakes. Complexity: one pass, no memory.
[[nodiscard]] std::optional<std::string> beyond_json_limits(std::string_view text,
                                                            const JsonLimits& limits = {});

}  // namespace spillway::um
