#pragma once

#include <cstdint>
#include <functional>

#include "prefetch/liveness.h"
#include "prefetch/runtime/copy_segments.h"
#include "um/arena.h"

namespace spillway::prefetch {

/// Gives segments room in the near memory of the copy mode, and charges it to a ledger.
///
/// Thread safety: one thread at a time. Throws: um::OutOfMemory beyond the ledger's limit.
class CopyArena {
 public:
  /// What a prefetch found.
  enum class Room : std::uint8_t {
    kFound,
    kInPieces,  ///< no piece is large enough before compact()
    kTouched,   ///< runs under way may still touch it
  };

  virtual ~CopyArena() = default;

  /// Gives room to a block of state that is near between steps. No step is under way.
  virtual void begin_state(DataId id) = 0;
  /// Gives room to what begins with run `position`. False: compact(), then repeat the call.
  [[nodiscard]] virtual bool begin_run(Position position) = 0;
  /// Gives room to the block that prefetch `index` of the plan brings back.
  [[nodiscard]] virtual Room begin_prefetch(std::uint32_t index) = 0;
  /// Takes back the room of a block that has left, in a step or between steps.
  virtual void release(CopySegment& segment) = 0;
  /// Takes back room that runs launched up to `run` may still touch: later runs may have it.
  virtual void retire(CopySegment& segment, Position run) = 0;
  /// The runs up to `run` have ended: prefetches may have what they touched.
  virtual void end_run(Position run) = 0;
  /// Makes all free bytes one piece; `slide` moves what lies in the way.
  virtual void compact(const std::function<void(const um::Arena::Slide&)>& slide) = 0;
};

}  // namespace spillway::prefetch
