#include "um/host/managed/residency.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "um/error.h"
#include "um/host/managed/fatal.h"
#include "um/threads/sleep_until.h"

namespace spillway::um {
namespace {

using Clock = Link::Clock;

/// How long a fault waits for other launches to end before it gives up.
constexpr std::chrono::seconds kPatience{10};

/// Small pages are moved many at a time: a sleep for the link is longer than one takes.
std::size_t depth_for(Bytes page) { return std::clamp<std::size_t>(2_MiB / page, 1, 32); }

/// Ends the process in place of a page fault that would show or lose what nobody is told of.
[[noreturn]] void fatal_failure(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& why) {
    fatal("a page fault cannot be resolved: " + std::string{why.what()} +
          "; the process ends before content is lost");
  } catch (...) {
    fatal("a page fault cannot be resolved: far memory fails");
  }
}

}  // namespace

Residency::Residency(const ManagedOptions& options, const PageGeometry& geometry,
                     PageMapper& mapper, PageTransfer& transfer, Ledger& ledger)
    : fault_latency_{options.fault_latency},
      writes_are_declared_{options.writes_are_declared},
      keeps_dead_{options.writes_are_declared && !options.poison},
      depth_{depth_for(geometry.page)},
      too_small_{"the near memory of " + to_string(geometry.slots * geometry.page) +
                 " is too small for the pages in use; give it more"},
      mapper_{mapper},
      transfer_{transfer},
      pages_(geometry.pages),
      order_{geometry.pages},
      dead_{geometry.pages},
      pool_{geometry.slots, geometry.page, ledger} {}

Counters Residency::counters() const {
  const Lock lock{mutex_};
  return counters_;
}

Bytes Residency::near_bytes(Range range, const PageGrid& grid) const {
  const PageSpan pages = grid.touched(range);
  Bytes near;
  const Lock lock{mutex_};
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    if (pages_[index].state == PageState::kResident) near += grid.shared(range, index);
  }
  return near;
}

void Residency::fault(PageIndex index) noexcept {
  const Clock::time_point start = Clock::now();
  if (fault_latency_.count() > 0) sleep_until(start + fault_latency_);
  Lock lock{mutex_};
  Page& page = pages_[index];
  wait_until_settled(lock, page);
  if (page.state == PageState::kDead) unmap_released(index);  // it was discarded since the touch
  if (page.state == PageState::kNone) {
    page.state = PageState::kFilling;
    const SlotIndex slot = find_slot_or_die(lock);
    const bool is_overwritten = page.pins > 0 && page.overwriters == page.pins;
    const Origin origin = is_overwritten                  ? Origin::kAbandoned
                          : page.content == Content::kFar ? Origin::kTransfer
                                                          : Origin::kBlank;
    finish_filling(lock, start_filling(lock, index, slot, origin), Cause::kFault);
  } else {
    note_touch(page);  // it became resident between the touch and now
  }
  ++counters_.faults;
  counters_.fault_time += Clock::now() - start;
}

void Residency::wait_until_settled(Lock& lock, const Page& page) {
  while (page.state == PageState::kFilling || page.state == PageState::kLeaving) {
    changed_.wait(lock);
  }
}

// --- room

Residency::Room Residency::find_room(Lock& lock) {
  while (true) {
    if (const auto slot = pool_.take()) return {.slot = slot, .failure = nullptr};
    if (const auto dead = dead_.first(); dead && !pool_.has_free()) {
      unmap_released(*dead);
      continue;
    }
    if (const auto victim = order_.first()) return evict(lock, *victim);
    if (leaving_ == 0) return {.slot = std::nullopt, .failure = nullptr};
    changed_.wait(lock);
  }
}

SlotIndex Residency::find_slot_or_die(Lock& lock) noexcept {
  std::optional<Clock::time_point> end;  // of patience with other launches
  while (true) {
    const Room room = find_room(lock);
    if (room.slot) return *room.slot;
    if (room.failure != nullptr) {
      if (!writes_are_declared_) fatal_failure(room.failure);
      if (const auto slot = evict_unsaved(lock)) return *slot;
      continue;
    }
    if (filling_ > 0) {
      changed_.wait(lock);
      continue;
    }
    if (!end) end = Clock::now() + kPatience;
    if (launches_ <= 1 || changed_.wait_until(lock, *end) == std::cv_status::timeout) {
      fatal(too_small_);
    }
  }
}

/// The slot that `victim` had, still charged; when its content cannot be saved, the failure.
Residency::Room Residency::evict(Lock& lock, PageIndex victim) {
  const Move move = start_leaving(lock, victim);
  if (!finish_leaving(lock, move)) return {.slot = std::nullopt, .failure = move.failure};
  ++counters_.evictions;
  return {.slot = move.slot, .failure = nullptr};
}

/// Takes the next page away without saving it, for a fault in a launch: the launch goes on to its
/// end, where check() tells that content is lost.
std::optional<SlotIndex> Residency::evict_unsaved(Lock& lock) {
  const auto victim = order_.first();
  if (!victim) return std::nullopt;
  Page& page = pages_[*victim];
  if (page.content == Content::kNear) page.content = Content::kNone;
  return evict(lock, *victim).slot;
}

// --- moves

/// Requires: the page is filling and `slot` is its own. Unlocks while the content moves.
Residency::Move Residency::start_filling(Lock& lock, PageIndex index, SlotIndex slot,
                                         Origin origin) {
  ++filling_;
  lock.unlock();
  Move move{.index = index, .slot = slot, .is_transferred = false, .end = {}, .failure = nullptr};
  if (origin == Origin::kTransfer) {
    const PageTransfer::Result result = transfer_.read(index, slot);
    move.is_transferred = true;
    move.end = result.end;
    move.failure = result.failure;
  } else if (origin == Origin::kBlank) {
    transfer_.blank(slot);
  } else {
    transfer_.abandon(slot);
  }
  lock.lock();
  return move;
}

/// Shows the page when the link has brought it. One that far memory did not give stays far, for a
/// hint; for a fault it is blank in a launch, whose check() tells of it, and else the end.
void Residency::finish_filling(Lock& lock, const Move& move, Cause cause) {
  lock.unlock();
  if (move.is_transferred) sleep_until(move.end);
  const bool is_refused = move.failure != nullptr && cause == Cause::kHint;
  if (move.failure != nullptr && !is_refused && !writes_are_declared_) fatal_failure(move.failure);
  if (!is_refused) mapper_.map(move.index, move.slot);
  lock.lock();
  --filling_;
  note_failure(move.failure);
  if (is_refused) {
    pool_.give(move.slot);
    refuse(move.index);
  } else {
    note_arrival(move, cause);
  }
}

/// The page is near and mapped.
void Residency::note_arrival(const Move& move, Cause cause) {
  Page& page = pages_[move.index];
  page.state = PageState::kResident;
  page.slot = move.slot;
  if (!move.is_transferred) page.content = Content::kNone;
  if (!writes_are_declared_ || page.writers > 0 || page.was_written_while_filling) {
    page.content = Content::kNear;
  }
  page.was_written_while_filling = false;
  if (cause == Cause::kFault) note_touch(page);
  if (page.pins == 0) order_.append(move.index, page.advice);
  if (move.is_transferred) counters_.bytes_prefetched += Bytes{mapper_.slot(move.slot).size()};
  changed_.notify_all();
}

/// Requires: the page is resident and not in use. Unmaps it while the mutex is held, so that no use
/// can begin and write to it unseen; then saves it when it is dirty.
Residency::Move Residency::start_leaving(Lock& lock, PageIndex index) {
  Page& page = pages_[index];
  expects(page.state == PageState::kResident && page.pins == 0, "a page in use does not leave");
  order_.remove(index);
  page.state = PageState::kLeaving;
  ++leaving_;
  Move move{.index = index,
            .slot = page.slot,
            .is_transferred = page.content == Content::kNear,
            .end = {},
            .failure = nullptr};
  mapper_.unmap(index, move.slot);
  if (!move.is_transferred) return move;
  lock.unlock();
  const PageTransfer::Result result = transfer_.write(index, move.slot);
  move.end = result.end;
  move.failure = result.failure;
  lock.lock();
  return move;
}

/// True: the page has left, and its slot is the caller's, still charged. False: its content could
/// not be saved, and it is near again as the one used last.
bool Residency::finish_leaving(Lock& lock, const Move& move) {
  const bool intervals = move.failure != nullptr;
  if (move.is_transferred) {
    lock.unlock();
    sleep_until(move.end);
    if (intervals) mapper_.map(move.index, move.slot);
    lock.lock();
  }
  Page& page = pages_[move.index];
  --leaving_;
  note_failure(move.failure);
  changed_.notify_all();
  if (intervals) {
    page.state = PageState::kResident;
    if (page.pins == 0) order_.append(move.index, page.advice);
    return false;
  }
  page.state = PageState::kNone;
  page.slot = kNoSlot;
  if (move.is_transferred) {
    page.content = Content::kFar;
    counters_.bytes_offloaded += Bytes{mapper_.slot(move.slot).size()};
  }
  return true;
}

void Residency::finish_leaving_and_free(Lock& lock, const Move& move) {
  if (finish_leaving(lock, move)) {
    pool_.give(move.slot);
  } else {
    ++counters_.refused_hints;
  }
}

void Residency::note_touch(Page& page) const noexcept {
  if (!writes_are_declared_) return;  // it counts as written anyway
  const bool is_declared = page.pins > 0;
  const bool is_read = page.advice == Advice::kReadMostly && page.content != Content::kNone;
  if (!is_declared && !is_read) page.content = Content::kNear;
}

void Residency::note_failure(const std::exception_ptr& failure) {
  if (failure_ == nullptr) failure_ = failure;
}

void Residency::throw_failure() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace spillway::um
