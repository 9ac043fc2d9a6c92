#include "um/text/json_limits.h"

namespace spillway::um {
namespace {

/// Returns the position behind the string that begins before `at`.
std::size_t skip_string(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

}  // namespace

std::optional<std::string> beyond_json_limits(std::string_view text, const JsonLimits& limits) {
  std::size_t depth = 0;
  std::size_t values = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c == '"') {
      at = skip_string(text, at);
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
