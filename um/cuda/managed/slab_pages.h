#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "um/bytes.h"
#include "um/memory.h"

namespace spillway::um {

/// What is near of a managed slab, page by page, as the hints given so far leave it; charges a
/// ledger for the live pages. No driver tells what is near: this is kept beside it.
///
/// A page is *away*; *live* (near, with content or about to get some); or *retired* (near, and only
/// launches already enqueued need what it holds, if any). Launches execute in order, so a retired
/// page that becomes live again needs nothing from the driver, and may not be dropped any more.
///
/// Thread safety: none.
class SlabPages {
 public:
  /// The ledger outlives it. Requires: `slab` consists of whole pages.
  SlabPages(Range slab, Bytes page, Ledger& ledger);
  SlabPages(const SlabPages&) = delete;
  SlabPages& operator=(const SlabPages&) = delete;
  /// Gives back every charge.
  ~SlabPages();

  // Each of these requires: `range` consists of whole pages of the slab.

  /// Makes all pages live. Returns the ranges that were away, in order and as few as can be.
  /// Throws: OutOfMemory, and nothing is changed.
  [[nodiscard]] std::vector<Range> bring(Range range);
  /// Makes live pages retired. One end_life() follows for each.
  void retire(Range range);
  /// Ends a life of each page that is near: what is live is retired, and launches that were under
  /// way have ended.
  void end_life(Range range);
  /// Makes retired pages that no launch needs away. Returns them: the driver must drop them.
  [[nodiscard]] std::vector<Range> drop(Range range);
  /// The content of the live pages has gone far: they are away.
  void send_away(Range range);
  /// How many bytes of `range` are on live pages. Requires: `range` is of the slab; it may begin
  /// and end within a page.
  [[nodiscard]] Bytes live_bytes(Range range) const;
  /// How many pages of `range` are away.
  [[nodiscard]] std::size_t away(Range range) const;

 private:
  enum class State : std::uint8_t { kAway, kLive, kRetired };
  struct Page {
    State state = State::kAway;
    std::uint32_t lives_due = 0;  // over but for launches under way
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
