#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "um/bytes.h"
#include "um/completion.h"
#include "um/range.h"

namespace spillway::um {

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
