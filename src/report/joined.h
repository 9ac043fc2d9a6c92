#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway {

/// "a", "a and b", "a, b and c".
[[nodiscard]] inline std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

}  // namespace spillway
