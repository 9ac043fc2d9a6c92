#pragma once

#include <string>
#include <vector>

#include "src/step.h"
#include "tests/src/state_numbers.h"

namespace spillway::test {

/// How far from zero drawn weights are, which decides how fast signals grow or fade.
enum class WeightScales {
  kPowersOfTwo,  ///< weight_scale() of the numbers that an output sums
  /// close_weight_scale() of them; of a transposed convolution, which is taken to have a kernel of
  /// twice its stride, 2 x 2 taps reach an output.
  kClose,
};

/// The values that training starts from, of the state blocks of `step`, a training step: numbers
/// drawn under `prefix`, a blank and the layer's name; the optimizer's are zero.
[[nodiscard]] std::vector<BlockNumbers> drawn_state(const Step& step, const std::string& prefix,
                                                    WeightScales scales);

}  // namespace spillway::test
