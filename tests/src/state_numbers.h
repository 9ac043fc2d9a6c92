#pragma once

#include <string>
#include <vector>

#include "src/step/step.h"
#include "src/train/state.h"

namespace spillway::test {

/// The numbers of a state block, in the canonical order.
struct BlockNumbers {
  std::string name;
  std::vector<float> values;
};

/// Gives the blocks of a state such numbers, one entry for each block of `step`, in order; by way
/// of a checkpoint's file.
void set_numbers(State& state, const Step& step, const std::vector<BlockNumbers>& numbers);

/// The numbers of all blocks of `step`, in order; by way of a checkpoint's file.
[[nodiscard]] std::vector<BlockNumbers> numbers_of(const State& state, const Step& step);

}  // namespace spillway::test
