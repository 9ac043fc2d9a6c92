#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::um {

/// Limits of a JSON document. Parsing text full of brackets takes a hundred times its size, and a
/// stack as deep as its nesting.
struct JsonLimits {
  std::size_t depth = 64;           ///< nesting of arrays and objects
  std::size_t values = 10'000'000;  ///< about 1 GB at most, parsed
};

/// Returns why `text` must not be parsed, as half a sentence; nullopt when it is within `limits`.
/// `text` need not be JSON: other mistakes are not reported. Complexity: one pass, no memory.
[[nodiscard]] std::optional<std::string> beyond_json_limits(std::string_view text,
                                                            const JsonLimits& limits = {});

}  // namespace spillway::um
