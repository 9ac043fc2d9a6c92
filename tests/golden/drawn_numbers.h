#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway::test {

/// The numbers of tools/golden/drawn_numbers.py: multiples of 1/256 between -1 and 1 from integer
/// arithmetic alone, the first `count` of the sequence `name`.
[[nodiscard]] std::vector<float> draw(std::string_view name, std::size_t count);

[[nodiscard]] std::vector<std::int32_t> draw_labels(std::string_view name, std::size_t count,
                                                    std::size_t classes);

/// The largest power of two, at most 1, whose square is at most 6 / fan_in.
[[nodiscard]] float weight_scale(std::size_t fan_in);
/// The same, closer: the largest m / 8 times that, m from 8 to 15.
[[nodiscard]] float close_weight_scale(std::size_t fan_in);

}  // namespace spillway::test
