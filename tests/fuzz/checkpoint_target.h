#pragma once

#include "tests/fuzz/target.h"

namespace spillway::fuzz {

/// Manifests of checkpoints, as they are and with the digest that they should have.
[[nodiscard]] Target checkpoint_target();

/// The name of resumed_target().
inline constexpr const char* kResumed = "resumed";

/// Manifest, plan and tensors of a whole checkpoint, one of which is the input. The others fit it,
/// digests included. All that a checkpoint is used for is tried: verifying, judging, training on.
/// Makes its checkpoints first, which takes a while.
[[nodiscard]] Target resumed_target();

}  // namespace spillway::fuzz
