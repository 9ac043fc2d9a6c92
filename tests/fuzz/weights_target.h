#pragma once

#include "tests/fuzz/target.h"

namespace spillway::fuzz {

/// Files of weights, spoilt: of a GPT-2 and of a ViT, each for its network.
[[nodiscard]] Target weights_target();

}  // namespace spillway::fuzz
