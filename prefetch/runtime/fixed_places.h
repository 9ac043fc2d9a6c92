#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Where everything is in a step of which each run and each move finds all it touches at the same
/// addresses every time: such a step can be given ahead, as a StepProgram.
///
/// Thread safety: none.
class FixedPlaces {
 public:
  /// What a move copies; nothing from nowhere when no bytes need to go.
  struct Copy {
    std::span<const std::byte> from;
    std::byte* to = nullptr;
  };

  virtual ~FixedPlaces() = default;

  /// The address of an operand of the run at `position`.
  [[nodiscard]] virtual std::byte* address(Position position, DataId id) const = 0;
  /// The workspace of that run; null when its algorithm needs none.
  [[nodiscard]] virtual std::byte* workspace(Position position) const = 0;
  [[nodiscard]] virtual Copy offload(std::uint32_t index) const = 0;
  [[nodiscard]] virtual Copy prefetch(std::uint32_t index) const = 0;

  /// A step is about to use these places. Blocks until state is where it begins.
  /// Throws: um::OutOfMemory; what moves throw.
  virtual void begin_step() = 0;
  /// It uses them no more.
  virtual void end_step() noexcept = 0;
};

}  // namespace spillway::prefetch
