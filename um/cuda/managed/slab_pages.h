#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "um/bytes.h"
#include "um/memory.h"

namespace spillway::um {

/// Tracks which pages of a managed slab are near, as a result of all hints so far, and charges a
/// ledger for live pages. This is tracked here because no driver reports it.
///
/// A page is *away*; *live* (near, with content or about to get it); or *retired* (near, and only
/// launches already enqueued need its content). Launches execute in order. A retired page can
/// therefore become live again without a driver call, and must not be dropped then.
///
/// Thread safety: none.
class SlabPages {
 public:
  /// The ledger outlives this object. Requires: `slab` consists of whole pages.
  SlabPages(Range slab, Bytes page, Ledger& ledger);
  SlabPages(const SlabPages&) = delete;
  SlabPages& operator=(const SlabPages&) = delete;
  /// Releases every charge.
  ~SlabPages();

  // All of these require: `range` consists of whole pages of the slab.

  /// Makes all pages live. Returns the ranges that were away, in order, merged where adjacent.
  /// Throws: OutOfMemory; then nothing has changed.
  [[nodiscard]] std::vector<Range> bring(Range range);
  /// Makes live pages retired. One end_life() must follow for each.
  void retire(Range range);
  /// Ends a life of each near page, and retires live pages that were not retired. Requires: the
  /// launches that were in flight have ended.
  void end_life(Range range);
  /// Makes retired pages away if no launch needs them. Returns them for the driver to drop.
  [[nodiscard]] std::vector<Range> drop(Range range);
  /// Makes live pages away after their content has moved far.
  void send_away(Range range);
  /// Returns how many bytes of `range` are on live pages. Requires: `range` lies in the slab; it
  /// may begin and end within a page.
  [[nodiscard]] Bytes live_bytes(Range range) const;
  /// Returns how many pages of `range` are away.
  [[nodiscard]] std::size_t away(Range range) const;

 private:
  enum class State : std::uint8_t { kAway, kLive, kRetired };
  struct Page {
    State state = State::kAway;
    std::uint32_t lives_due = 0;  // calls of retire() still without an end_life()
  };
  struct Span {
    std::size_t begin;
    std::size_t end;
  };

  [[nodiscard]] Span pages_of(Range range) const;
  template <class Pred>
  [[nodiscard]] std::vector<Range> ranges_where(Span span, const Pred& pred) const;

  Range slab_;
  std::size_t page_;
  Ledger& ledger_;
  std::vector<Page> pages_;
};

}  // namespace spillway::um
