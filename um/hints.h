#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "um/bytes.h"
#include "um/error.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway::um {

/// Far memory as a processor beside it accesses it: without the link and without near memory.
///
/// Thread safety: calls on ranges that do not overlap may run concurrently, also beside moves of
/// other ranges.
class FarSide {
 public:
  virtual ~FarSide() = default;

  /// Returns the addresses of the bytes if they are in RAM; otherwise an empty range.
  [[nodiscard]] virtual Range addresses(Bytes /*offset*/, Bytes /*size*/) { return {}; }
  /// Return when the bytes have been copied. Requires: address, offset and size are multiples of
  /// 4096. Throw: Error when a file cannot be read or written, or its content is corrupt.
  virtual void read(Bytes offset, Range to) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;
};

/// Far memory in RAM with addresses, independent of who moves its content.
class FarRange final : public FarSide {
 public:
  explicit FarRange(Range memory) : memory_{memory} {}

  [[nodiscard]] Range addresses(Bytes offset, Bytes size) override {
    expects(offset.count() <= memory_.size() && size.count() <= memory_.size() - offset.count(),
            "a range of the far memory");
    return memory_.subspan(offset.count(), size.count());
  }
  void read(Bytes offset, Range to) override {
    std::ranges::copy(addresses(offset, Bytes{to.size()}), to.begin());
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, addresses(offset, Bytes{from.size()}).begin());
  }

 private:
  Range memory_;
};

/// Standing advice on a range; the latest holds. Advice changes only times if every write is
/// declared by a use. An undeclared write is kept if it faults on a page that is not near. With
/// kReadMostly that page must also have no content yet, so that touching a range may initialise it.
enum class Advice {
  kNone,
  kPreferNear,  ///< evict last
  kPreferFar,   ///< evict first
  kReadMostly   ///< keep the far copy valid: a fault outside any use counts as a read
};

/// How a launch uses an operand.
enum class Access {
  kRead,
  kWrite,     ///< overwrites every byte; the old content is not needed
  kReadWrite  ///< reads and writes, or writes only some of the bytes
};

/// One operand of a launch.
struct Use {
  Range range;
  Access access;
};

/// Hints about managed memory: one verb per driver hint, and the declaration of each launch's
/// operands. The host device keeps declared operands near and learns from them which pages become
/// dirty. A CUDA device may ignore the declarations.
///
/// The ranges of prefetch, populate, discard and advise are whole pages of one managed slab.
///
/// Thread safety: implementations are safe to call from several threads at once.
class Hints {
 public:
  virtual ~Hints() = default;

  /// Starts moving the content of `range` to `tier`: a prefetch (kNear) or an offload (kFar). The
  /// near memory of an offload is free when `done` is called. Returns before the move ends. Moves
  /// in one direction end in the order of their issue.
  virtual void prefetch(Range range, MemoryTier tier, Completion done) = 0;

  /// Makes launches enqueued from now on wait for the prefetches of `range` requested so far, and
  /// returns true; may block until these are issued. Returns false when the caller must wait for
  /// the prefetches before it launches.
  [[nodiscard]] virtual bool lets_launches_wait(Range /*range*/) { return false; }

  /// Gives `range` near memory without its content (discard and prefetch), for a launch that will
  /// overwrite it. Only launches enqueued from now on may use that memory.
  virtual void populate(Range range) = 0;

  /// Returns whether populate() and a prefetch may wait for the discard() of retired ranges, to use
  /// their room. The caller must then discard each retired range as soon as its launches have
  /// ended, on a thread that does not populate.
  [[nodiscard]] virtual bool waits_for_discards() const { return false; }

  /// Announces a discard(): no launch enqueued from now on needs the content of `range`. The
  /// range's room may serve pages that these launches overwrite after all earlier launches.
  virtual void retire(Range /*range*/) {}

  /// Drops the content of `range` without write-back and frees its near memory now. Keeps retired
  /// pages that have been populated again. Until the next write, populate or prefetch, reads are
  /// indeterminate and undeclared writes are lost. Requires: no launch in flight uses the dropped
  /// pages.
  virtual void discard(Range range) = 0;

  virtual void advise(Range range, Advice advice) = 0;

  /// Returns far memory as the processor beside it accesses it, by offsets in the slab; null if no
  /// processor can. Requires: a prefetch() to far of every accessed range has ended, and nothing
  /// prefetches or touches the range during an access.
  [[nodiscard]] virtual FarSide* far_side() { return nullptr; }

  /// Declares a launch: until end_use() with the same operands, its operands are not evicted and
  /// its writes become dirty. Launches may overlap. Throws: Error when an earlier move or page
  /// fault failed, such as a read of a far file.
  virtual void begin_use(std::span<const Use> operands) = 0;
  virtual void end_use(std::span<const Use> operands) noexcept = 0;

  /// Reports failures at the end of a step, when no later begin_use() could report them. Throws:
  /// Error when a move or page fault failed, like begin_use().
  virtual void check() = 0;
};

/// Explicit swapping: copies between near memory and a far store that offsets address.
///
/// Thread safety: implementations are safe to call from several threads at once.
class Copies {
 public:
  virtual ~Copies() = default;

  /// Starts copying `near` to `far_offset`; returns before the copy ends. Copies in one direction
  /// end in the order of their issue. Requires: address, size and offset are multiples of 4096.
  virtual void offload(std::span<const std::byte> near, Bytes far_offset, Completion done) = 0;
  virtual void prefetch(Bytes far_offset, Range near, Completion done) = 0;

  /// Returns far memory if a device can copy to and from its addresses; otherwise an empty range.
  [[nodiscard]] virtual Range far() { return {}; }
  /// Returns far memory as the processor beside it accesses it, by the same offsets; null if no
  /// processor can.
  [[nodiscard]] virtual FarSide* far_side() { return nullptr; }
  /// Counts bytes that the caller has copied between far() and near memory without this class.
  virtual void note_copied(Bytes /*offloaded*/, Bytes /*prefetched*/) noexcept {}

  /// Copies `from` to a lower address, which may overlap it, and waits for the copy. May overwrite
  /// `spare`, which may be empty; a larger `spare` is faster. Requires: no copy or launch in flight
  /// touches the ranges; `spare` overlaps none of them.
  virtual void slide(std::span<const std::byte> from, std::byte* to, Range /*spare*/) {
    std::memmove(to, from.data(), from.size());
  }
};

}  // namespace spillway::um
