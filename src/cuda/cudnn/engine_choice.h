#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "um/bytes.h"

namespace spillway::cuda {

/// Workspaces are counted in whole units of this size, and at least one: so an engine that takes
/// 131 bytes is not thought larger than one that takes none and is ten times as slow.
inline constexpr um::Bytes kWorkspaceUnit{1U << 20U};

/// What an engine's workspace counts as.
[[nodiscard]] constexpr um::Bytes counted_workspace(um::Bytes workspace) {
  return um::round_up(workspace == um::Bytes{} ? um::Bytes{1} : workspace, kWorkspaceUnit);
}

/// Which of cuDNN's engines are worth a measurement. `workspaces` are counted ones, in the order in
/// which the engines are expected to be fast. The first of the result is the one with the least
/// workspace (of several, the fastest); then, by workspace, come those than which no faster one
/// takes less, and the four fastest whatever they take, since the expected order is not the
/// measured one; eight at most. Nothing takes more than `most`.
[[nodiscard]] std::vector<std::size_t> choose_engines(std::span<const um::Bytes> workspaces,
                                                      um::Bytes max);

}  // namespace spillway::cuda
