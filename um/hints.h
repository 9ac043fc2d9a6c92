#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "um/bytes.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway::um {

class FarSide;

/// Standing advice on a range; the last one given holds. Advice changes only times, as long as
/// every write is declared by a use. One that is not is kept when it faults on a page that is not
/// near; with kReadMostly only when that page has no content yet, so that a range may be
/// initialised by touching it.
enum class Advice {
  kNone,
  kPreferNear,  ///< evict last
  kPreferFar,   ///< evict first
  kReadMostly   ///< keep the far copy valid: a fault outside any use is taken for a read
};

/// How a launch uses an operand.
enum class Access {
  kRead,
  kWrite,     ///< overwrites every byte, old content is not needed
  kReadWrite  ///< reads and writes, or writes only some of the bytes
};

/// One operand of a launch.
struct Use {
  Range range;
  Access access;
};

/// Where the runtime sends its decisions about managed memory. One verb per driver hint, and the
/// declaration of each launch's operands (the host device keeps them near and learns from it which
/// pages become dirty; a CUDA device may ignore it).
///
/// Ranges of prefetch, populate, discard and advise consist of whole pages of one managed slab.
///
/// Thread safety: implementations are safe to call from several threads at once.
class Hints {
 public:
  virtual ~Hints() = default;

  /// Starts moving the content of `range` to `tier`: prefetch (kNear) or offload (kFar; near
  /// memory is free again when `done` is called). Returns before the move ends. Moves in one
  /// direction end in the order of their issue.
  virtual void prefetch(Range range, MemoryTier tier, Completion done) = 0;

  /// Lets launches enqueued from now on wait for the prefetches of pages of `range` that were asked
  /// for so far, and returns true; may block until these have been issued. Or returns false: then
  /// the caller must wait for their ends before it launches what uses them.
  [[nodiscard]] virtual bool lets_launches_wait(Range /*range*/) { return false; }

  /// Gives `range` near memory, without its content (discard and prefetch): for what the next
  /// launch overwrites. Launches enqueued from now on find it there.
  virtual void populate(Range range) = 0;

  /// Says, before discard(), that no launch enqueued from now on needs the content of `range`:
  /// its room may be given to what they overwrite, which they do only after those so far.
  virtual void retire(Range /*range*/) {}

  /// Drops the content of `range` without write-back and frees its near memory now. Until the next
  /// write, populate or prefetch a read is indeterminate, and undeclared writes are lost. Of what
  /// was retired, only what is not populated again. Requires: no launch under way uses the dropped.
  virtual void discard(Range range) = 0;

  virtual void advise(Range range, Advice advice) = 0;

  /// Far memory as the processor beside it reaches it, by offsets in the slab; null where none
  /// does. Requires of all that it is asked for: prefetch() has sent it far, or found it far, and
  /// that has ended; nothing brings it back or touches it meanwhile.
  [[nodiscard]] virtual FarSide* far_side() { return nullptr; }

  /// Declares a launch: its operands are not evicted, and what it writes becomes dirty, until
  /// end_use() with the same operands. Launches may overlap.
  /// Throws: Error when an earlier move or page fault failed (a far file that cannot be read, say).
  virtual void begin_use(std::span<const Use> operands) = 0;
  virtual void end_use(std::span<const Use> operands) noexcept = 0;

  /// For the end of a step: no later begin_use() tells what went wrong in its last launch.
  /// Throws: Error when a move or page fault failed, as begin_use().
  virtual void check() = 0;
};

class FarSide;

/// Explicit swapping: copies between near memory and a far store addressed by offset.
///
/// Thread safety: implementations are safe to call from several threads at once.
class Copies {
 public:
  virtual ~Copies() = default;

  /// Starts copying `near` to `far_offset`; returns before the copy ends. Copies in one direction
  /// end in the order of their issue. Requires: address, size and offset are multiples of 4096.
  virtual void offload(std::span<const std::byte> near, Bytes far_offset, Completion done) = 0;
  virtual void prefetch(Bytes far_offset, Range near, Completion done) = 0;

  /// Far memory, where it has addresses that a device copies to and from by itself; else empty.
  [[nodiscard]] virtual Range far() { return {}; }
  /// Far memory as the processor beside it reaches it, by the same offsets; null where none does.
  [[nodiscard]] virtual FarSide* far_side() { return nullptr; }
  /// Somebody has copied so much between far() and near memory himself.
  virtual void note_copied(Bytes /*offloaded*/, Bytes /*prefetched*/) noexcept {}

  /// Copies `from` to a lower address, of which the two may share a part, and waits for that.
  /// `spare` is near memory that may be overwritten meanwhile, perhaps none: the more, the faster.
  /// Requires: no copy and no launch under way touches any of them; `spare` is apart.
  virtual void slide(std::span<const std::byte> from, std::byte* to, Range /*spare*/) {
    std::memmove(to, from.data(), from.size());
  }
};

}  // namespace spillway::um
