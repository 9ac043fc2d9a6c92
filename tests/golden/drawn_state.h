#pragma once

#include <string>
#include <vector>

#include "src/step/step.h"
#include "tests/src/state_numbers.h"

namespace spillway::test {

/// What training starts from.
enum class FirstValues {
  /// Weights within weight_scale() of the numbers that an output sums; batch norms around 0.
  kCoarse,
  /// Weights within close_weight_scale() of them, for signals that neither grow nor fade; batch
  /// norms around 1/2, so that ReLUs behind them let most through: for deep networks. A transposed
  /// convolution is taken to have a kernel of twice its stride: 2 x 2 taps reach an output.
  kGentle,
};

/// The values that training starts from, of the state blocks of `step`, a training step: numbers
/// drawn under `prefix`, a blank and the layer's name; the optimizer's are zero.
[[nodiscard]] std::vector<BlockNumbers> drawn_state(const Step& step, const std::string& prefix,
                                                    FirstValues kind);

}  // namespace spillway::test
