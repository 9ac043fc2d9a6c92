#pragma once

#include <string>
#include <vector>

#include "src/step/step.h"
#include "tests/src/state_numbers.h"

namespace spillway::test {

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
