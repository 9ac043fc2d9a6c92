#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/program/step.h"
#include "tests/src/network_in_memory.h"

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

/// Initial values of a training.
enum class FirstValues {
  /// Weights within weight_scale() of the number of summands of an output; batch norms around 0.
  kCoarse,
  /// Weights within close_weight_scale(), so that signals neither grow nor fade: for deep networks.
  /// Batch norms around 1/2, so that most values pass ReLUs. A transposed convolution is assumed to
  /// have a kernel of twice its stride: 2 x 2 taps per output.
  kGentle,
};

/// Returns the initial values of the state blocks of `step`, a training step. Sequences are named
/// by `prefix`, a blank and the layer's name; optimizer state is zero.
[[nodiscard]] std::vector<BlockNumbers> drawn_state(const Step& step, const std::string& prefix,
                                                    FirstValues kind);

}  // namespace spillway::test
