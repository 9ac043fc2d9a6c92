#pragma once

#include <span>

#include "prefetch/runtime/step_layout.h"
#include "um/bytes.h"

namespace spillway {

/// The largest workspace that may have near memory of its own for all the time, shared by every
/// workspace that is no larger, while the plans of `layouts` still keep their budgets; zero when
/// there is none. A plan counts a workspace only while its run is on, so that a buffer for all may
/// not fit; larger workspaces stay what the plan makes of them. In whole pages.
/// Complexity: a verification of each plan for each size of a workspace, at most.
[[nodiscard]] um::Bytes workspace_buffer(std::span<const prefetch::StepLayout* const> layouts);

}  // namespace spillway
