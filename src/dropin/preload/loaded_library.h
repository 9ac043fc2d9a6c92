#pragma once

#include <array>
#include <climits>

namespace spillway::dropin {

/// A path, or "".
using LoadedPath = std::array<char, PATH_MAX>;

/// The path of the first loaded library whose file's name begins with `name`: "libcudart.so" finds
/// libcudart.so.13. Complexity: O(loaded libraries).
[[nodiscard]] LoadedPath loaded_library(const char* name) noexcept;

}  // namespace spillway::dropin
