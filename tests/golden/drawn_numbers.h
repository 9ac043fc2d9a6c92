#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway::test {

/// Returns the first `count` numbers of the sequence `name` of tools/golden/drawn_numbers.py. They
/// are multiples of 1/256 between -1 and 1, by integer arithmetic only.
[[nodiscard]] std::vector<float> draw(std::string_view name, std::size_t count);

[[nodiscard]] std::vector<std::int32_t> draw_labels(std::string_view name, std::size_t count,
                                                    std::size_t classes);

/// Returns the largest power of two, at most 1, with a square of at most 6 / fan_in.
[[nodiscard]] float weight_scale(std::size_t fan_in);
/// Returns a closer scale: the largest m / 8 times weight_scale(), m from 8 to 15.
[[nodiscard]] float close_weight_scale(std::size_t fan_in);

}  // namespace spillway::test
