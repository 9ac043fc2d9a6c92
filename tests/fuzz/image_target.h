#pragma once

#include "tests/fuzz/target.h"

namespace spillway::fuzz {

/// JPEG and PNG files, spoilt, as a training and an evaluation read them.
[[nodiscard]] Target image_target();

}  // namespace spillway::fuzz
