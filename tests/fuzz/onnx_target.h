#pragma once

#include "tests/fuzz/target.h"

namespace spillway::fuzz {

/// Networks of ONNX files, as train --net reads them.
[[nodiscard]] Target onnx_target();

}  // namespace spillway::fuzz
