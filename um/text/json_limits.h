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
[[nodiscard]] inline std::optional<std::string> beyond_json_limits(std::string_view text,
                                                                   const JsonLimits& limits = {}) {
  std::size_t depth = 0;
  std::size_t values = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c == '"') {
      while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
      ++at;
    } else if (c == '[' || c == '{') {
      ++values;
      if (++depth > limits.depth) {
        return "nests more than " + std::to_string(limits.depth) + " levels deep, at byte " +
               std::to_string(at);
      }
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ',') {
      ++values;
    }
    if (values > limits.values) {
      return "holds more than " + std::to_string(limits.values) + " values";
    }
  }
  return std::nullopt;
}

}  // namespace spillway::um
