#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace spillway {

/// In which order the pages of a slab are touched.
enum class TouchPattern {
  kStream,   ///< from the first to the last
  kStride,   ///< every eighth, then those behind them, until all have been
  kReverse,  ///< from the last to the first
  kRandom    ///< drawn with replacement, as many as there are
};

/// As bench files call them: "stream".
[[nodiscard]] std::string to_string(TouchPattern pattern);
/// Nothing when no pattern is called `name`.
[[nodiscard]] std::optional<TouchPattern> find_pattern(const std::string& name);

/// The pages that one pass over `pages` pages touches, in order: `pages` of them, always the same.
[[nodiscard]] std::vector<std::size_t> touch_order(TouchPattern pattern, std::size_t pages);

}  // namespace spillway
