#include "um/host/managed/residency.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "um/error.h"
#include "um/host/managed/fatal.h"
#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

using Clock = Link::Clock;
using Lock = PageTable::Lock;
using Move = PageMoves::Move;
using Origin = PageMoves::Origin;
using Cause = PageMoves::Cause;

/// The time that a fault waits for other launches to end.
constexpr std::chrono::seconds kPatience{10};

constexpr std::size_t kMaxDepth = 32;

/// Moves many small pages at once: sleeping for the link takes longer than one transfer.
std::size_t depth_for(Bytes page) { return std::clamp<std::size_t>(2_MiB / page, 1, kMaxDepth); }

void expect_unused(const Page& page) {
  expects(page.pins == 0, "a discarded page is not an operand of a launch under way");
}

Origin origin_of(const Page& page) {
  return page.content == Content::kFar ? Origin::kTransfer : Origin::kBlank;
}

/// Moves in flight of one engine, in the order of issue. A fixed ring, since this code must not
/// throw or allocate. `finish` ends a move.
template <class Finish>
class Batch {
 public:
  explicit Batch(Finish finish) : finish_{std::move(finish)} {}

  /// Requires: at most kMaxDepth moves are in flight.
  void add(Move move) { moves_.at((first_ + size_++) % moves_.size()) = std::move(move); }
  void finish_down_to(std::size_t count) {
    while (size_ > count) {
      const Move move = std::move(moves_.at(first_));
      first_ = (first_ + 1) % moves_.size();
      --size_;
      note_failure(move.failure);
      finish_(move);
    }
  }
  void note_failure(const std::exception_ptr& failure) {
    if (failure_ == nullptr) failure_ = failure;
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns the first failure.
  [[nodiscard]] std::exception_ptr failure() const { return failure_; }

 private:
  Finish finish_;
  std::array<Move, kMaxDepth + 1> moves_{};
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

NearRoom::NearRoom(bool writes_are_declared, const PageGeometry& geometry, PageTable& table,
                   PageMoves& moves)
    : writes_are_declared_{writes_are_declared},
      too_small_{"the near memory of " + to_string(geometry.slots * geometry.page) +
                 " is too small for the pages in use; give it more"},
      table_{table},
      moves_{moves} {}

NearRoom::Result NearRoom::find(PageTable::Lock& lock) {
  while (true) {
    if (const auto slot = table_.take_free_slot()) return {.slot = slot, .failure = nullptr};
    if (const auto victim = table_.victim()) return evict(lock, *victim);
    if (!moves_.any_leaving()) return {.slot = std::nullopt, .failure = nullptr};
    table_.wait(lock);
  }
}

SlotIndex NearRoom::find_or_end(PageTable::Lock& lock) noexcept {
  std::optional<Clock::time_point> end;  // set at the first wait for other launches
  while (true) {
    const Result room = find(lock);
    if (room.slot) return *room.slot;
    if (room.failure != nullptr) {
      if (!writes_are_declared_) fatal_fault(room.failure);
      if (const auto slot = evict_unsaved(lock)) return *slot;
      continue;
    }
    if (moves_.any_filling()) {
      table_.wait(lock);
      continue;
    }
    if (!end) end = Clock::now() + kPatience;
    if (table_.launches() <= 1 || !table_.wait_until(lock, *end)) fatal(too_small_);
  }
}

/// Returns the former slot of `victim`, still charged, or the failure to save its content.
NearRoom::Result NearRoom::evict(PageTable::Lock& lock, PageIndex victim) {
  const PageMoves::Move move = moves_.start_leaving(lock, victim);
  if (!moves_.finish_leaving(lock, move)) return {.slot = std::nullopt, .failure = move.failure};
  ++moves_.counters().evictions;
  return {.slot = move.slot, .failure = nullptr};
}

/// Evicts the next page without saving it, for a fault in a launch. The launch runs to its end,
/// where check() reports the lost content.
std::optional<SlotIndex> NearRoom::evict_unsaved(PageTable::Lock& lock) {
  const auto victim = table_.victim();
  if (!victim) return std::nullopt;
  Page& page = table_[*victim];
  if (page.content == Content::kNear) page.content = Content::kNone;
  return evict(lock, *victim).slot;
}

Residency::Residency(const ManagedOptions& options, const PageGeometry& geometry,
                     PageMapper& mapper, PageTransfer& transfer, Ledger& ledger)
    : fault_latency_{options.fault_latency},
      releases_lazily_{options.writes_are_declared && !options.poison},
      depth_{depth_for(geometry.page)},
      mapper_{mapper},
      table_{geometry, mapper, ledger},
      moves_{options.writes_are_declared, table_, mapper, transfer},
      room_{options.writes_are_declared, geometry, table_, moves_} {
  // Resolves the clock's symbol now: the loader needs more stack than a fault handler has.
  static_cast<void>(Clock::now());
}

Counters Residency::counters() const {
  const Lock lock = table_.lock();
  return moves_.counters();
}

Bytes Residency::near_bytes(Range range, const PageGrid& grid) const {
  const PageSpan pages = grid.touched(range);
  Bytes near;
  const Lock lock = table_.lock();
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    if (table_[index].state == PageState::kResident) near += grid.shared(range, index);
  }
  return near;
}

bool Residency::fault(PageIndex index) noexcept {
  const Clock::time_point start = Clock::now();
  if (fault_latency_.count() > 0) sleep_until(start + fault_latency_);
  Lock lock = table_.lock();
  Page& page = table_[index];
  table_.wait_until_settled(lock, page);
  // The page may have been discarded since the touch.
  if (page.state == PageState::kReleased) table_.unmap_released(index);
  bool is_resolved = true;
  if (page.state == PageState::kNone) {
    page.state = PageState::kFilling;
    const SlotIndex slot = room_.find_or_end(lock);
    const bool is_overwritten = page.pins > 0 && page.overwriters == page.pins;
    const Origin origin = is_overwritten ? Origin::kAbandoned : origin_of(page);
    moves_.finish_filling(lock, moves_.start_filling(lock, index, slot, origin), Cause::kFault);
  } else {
    is_resolved = touch_near(index);
  }
  Counters& counters = moves_.counters();
  ++counters.faults;
  counters.fault_time += Clock::now() - start;
  return is_resolved;
}

// Handles a page that became resident after the touch. A second fault in the same stay has another
// cause. A thread with an overwritten entry touches once more.
bool Residency::touch_near(PageIndex index) noexcept {
  Page& page = table_[index];
  const Finding found{.thread = std::this_thread::get_id(), .stay = page.stay};
  auto* own = std::ranges::find(findings_, found.thread, &Finding::thread);
  if (own == findings_.end()) own = &findings_.at(next_finding_++ % findings_.size());
  if (own->thread == found.thread && own->stay == found.stay) return mapper_.mend(index);
  *own = found;
  moves_.note_touch(page);
  return true;
}

std::exception_ptr Residency::fetch(PageSpan pages) noexcept {
  Lock lock = table_.lock();
  Batch batch{[&](const Move& move) { moves_.finish_filling(lock, move, Cause::kHint); }};
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = table_[index];
    if (!page.is_settled()) batch.finish_down_to(0);  // its mover may wait for this batch
    table_.wait_until_settled(lock, page);
    if (page.state == PageState::kResident) {
      table_.renew(index);
      continue;
    }
    if (page.state == PageState::kReleased) table_.unmap_released(index);
    page.state = PageState::kFilling;
    NearRoom::Result room = room_.find(lock);
    if (!room.slot && !batch.empty()) {
      batch.finish_down_to(0);  // the finished pages may be evicted
      room = room_.find(lock);
    }
    if (!room.slot) {
      batch.note_failure(room.failure);
      moves_.refuse(index);
      continue;
    }
    batch.add(moves_.start_filling(lock, index, *room.slot, origin_of(page)));
    batch.finish_down_to(depth_);
  }
  batch.finish_down_to(0);
  return batch.failure();
}

std::exception_ptr Residency::offload(PageSpan pages) noexcept {
  Lock lock = table_.lock();
  Batch batch{[&](const Move& move) { moves_.finish_leaving_and_free(lock, move); }};
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    const Page& page = table_[index];
    if (!page.is_settled()) batch.finish_down_to(0);
    table_.wait_until_settled(lock, page);
    if (page.state != PageState::kResident) continue;
    if (page.pins > 0) {
      ++moves_.counters().refused_hints;
      continue;
    }
    batch.add(moves_.start_leaving(lock, index));
    batch.finish_down_to(depth_);
  }
  batch.finish_down_to(0);
  return batch.failure();
}

void Residency::populate(PageSpan pages) {
  Lock lock = table_.lock();
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = table_[index];
    table_.wait_until_settled(lock, page);
    if (page.state == PageState::kResident) {
      table_.renew(index);
      continue;
    }
    page.content = Content::kNone;
    if (page.state == PageState::kReleased) {
      if (table_.reuse_mapping(index)) continue;
      table_.unmap_released(index);
    }
    if (table_.take_slot(index)) continue;
    page.state = PageState::kFilling;
    if (const auto slot = room_.find(lock).slot) {
      const Move move = moves_.start_filling(lock, index, *slot, Origin::kAbandoned);
      moves_.finish_filling(lock, move, Cause::kHint);
    } else {
      moves_.refuse(index);
    }
  }
}

void Residency::discard(PageSpan pages) {
  Lock lock = table_.lock();
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    expect_unused(table_[index]);  // checks all before any is discarded
  }
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = table_[index];
    table_.wait_until_settled(lock, page);
    expect_unused(page);            // a use may have begun meanwhile
    page.content = Content::kNone;  // nothing to save
    if (page.state != PageState::kResident) continue;
    if (releases_lazily_) {
      table_.release_lazily(index);
    } else {
      moves_.finish_leaving_and_free(lock, moves_.start_leaving(lock, index));
    }
    ++moves_.counters().discarded_pages;
  }
}

void Residency::advise(PageSpan pages, Advice advice) {
  const Lock lock = table_.lock();
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    table_[index].advice = advice;
    table_.renew(index);
  }
}

void Residency::begin_use(std::span<const Use> operands, const PageGrid& grid) {
  const Lock lock = table_.lock();
  moves_.throw_failure();
  table_.begin_use(operands, grid);
}

void Residency::end_use(std::span<const Use> operands, const PageGrid& grid) noexcept {
  const Lock lock = table_.lock();
  table_.end_use(operands, grid);
}

void Residency::check() const {
  const Lock lock = table_.lock();
  moves_.throw_failure();
}

}  // namespace spillway::um
