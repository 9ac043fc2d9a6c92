#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "um/nanoseconds.h"

namespace spillway::um {

/// Where work of a step goes: work of one lane runs in order, beside that of the others.
enum class Lane : std::uint8_t {
  kCompute,  ///< the stream that the lanes belong to
  kIn,       ///< copies into near memory
  kOut       ///< copies out of near memory
};
inline constexpr std::size_t kLanes = 3;

/// Work of a whole step given ahead of the device, which alone sees to its order: nothing on the
/// host waits in between. It can be kept and done again as one piece (a CUDA graph).
///
/// run() and keep() call `give`, which gives the work: copies by copy(), kernels to the stream
/// itself, and between them what waits for what. It begins when the stream's work so far has ended,
/// and what the stream is given afterwards begins when all of it has.
///
/// Thread safety: none; to be called by work of the stream. Throws: Error when the driver fails;
/// nothing of what was given is under way then. The stream outlives it.
class Lanes {
 public:
  /// A point in a lane, valid until the next run() or keep().
  using Mark = std::uint32_t;

  virtual ~Lanes() = default;

  virtual void run(const std::function<void()>& give) = 0;
  /// Keeps what is given, instead of doing it, and drops what was kept before.
  virtual void keep(const std::function<void()>& give) = 0;
  [[nodiscard]] virtual bool has_kept() const = 0;
  /// Does what was kept, once more. Requires: has_kept().
  virtual void run_kept() = 0;

  // Within `give`:

  virtual void copy(Lane lane, std::span<const std::byte> from, std::byte* to) = 0;
  [[nodiscard]] virtual Mark mark(Lane lane) = 0;
  /// Later work of `lane` begins when the lane of `mark` has come to it.
  virtual void wait(Lane lane, Mark mark) = 0;

  /// When that was, since the beginning. Requires: made in a run() of which all work has ended.
  [[nodiscard]] virtual Nanoseconds time(Mark mark) = 0;
};

}  // namespace spillway::um
