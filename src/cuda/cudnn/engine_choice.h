#pragma once

#include <cstddef>
#include <cstdint>
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

/// What an engine with its settings is chosen by.
struct EngineCandidate {
  um::Bytes workspace;      ///< a counted one
  std::int64_t engine = 0;  ///< the same for all settings of an engine
  /// Does without the tensor cores that others use: some tens of times as long, for measuring, too.
  bool is_slow = false;
};

/// Which of cuDNN's engines are worth a measurement, of `candidates` in the order in which they are
/// expected to be fast. That is not the measured order, so there are many: the one with the least
/// workspace, those than which no faster one takes less, and the four fastest, eight together at
/// most; then engines that are not among them, each with its fastest settings, up to twelve; then
/// further settings, up to ten; at last, up to ten, slow ones. The result is in the order of
/// workspaces, of equal ones in that of `candidates`. Nothing takes more than `max`.
[[nodiscard]] std::vector<std::size_t> choose_engines(std::span<const EngineCandidate> candidates,
                                                      um::Bytes max);

}  // namespace spillway::cuda
