#include "um/host/managed/page_moves.h"

#include <cstring>
#include <utility>

#include "um/host/managed/fatal.h"
#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

constexpr int kPoison = 0xff;  // for each byte: a NaN in every floating-point type

}  // namespace

PageTransfer::PageTransfer(const ManagedOptions& options, const PageMapper& mapper,
                           std::unique_ptr<FarStore> far)
    : mapper_{mapper},
      page_{options.page},
      is_poisoned_{options.poison},
      far_{std::move(far)},
      in_{options.link},
      out_{options.link} {}

PageTransfer::Result PageTransfer::read(PageIndex page, SlotIndex slot) noexcept {
  const Link::Clock::time_point end = in_.reserve(page_);
  try {
    far_->read(page * page_, mapper_.slot(slot));
    return {.end = end, .failure = nullptr};
  } catch (...) {
    blank(slot);
    return {.end = end, .failure = std::current_exception()};
  }
}

PageTransfer::Result PageTransfer::write(PageIndex page, SlotIndex slot) noexcept {
  const Link::Clock::time_point end = out_.reserve(page_);
  try {
    far_->write(page * page_, mapper_.slot(slot));
    return {.end = end, .failure = nullptr};
  } catch (...) {
    return {.end = end, .failure = std::current_exception()};
  }
}

void PageTransfer::blank(SlotIndex slot) const noexcept {
  std::memset(mapper_.slot(slot).data(), is_poisoned_ ? kPoison : 0, page_.count());
}

PageMoves::Move PageMoves::start_filling(Lock& lock, PageIndex index, SlotIndex slot,
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

void PageMoves::finish_filling(Lock& lock, const Move& move, Cause cause) {
  lock.unlock();
  if (move.is_transferred) sleep_until(move.end);
  const bool is_refused = move.failure != nullptr && cause == Cause::kHint;
  if (move.failure != nullptr && !is_refused && !writes_are_declared_) fatal_fault(move.failure);
  if (!is_refused) mapper_.map(move.index, move.slot);
  lock.lock();
  --filling_;
  note_failure(move.failure);
  if (is_refused) {
    table_.give_slot(move.slot);
    refuse(move.index);
  } else {
    note_arrival(move, cause);
  }
}

void PageMoves::note_arrival(const Move& move, Cause cause) {
  Page& page = table_[move.index];
  page.slot = move.slot;
  if (!move.is_transferred) page.content = Content::kNone;
  if (!writes_are_declared_ || page.writers > 0 || page.was_written_while_filling) {
    page.content = Content::kNear;
  }
  page.was_written_while_filling = false;
  if (cause == Cause::kFault) note_touch(page);
  table_.become_resident(move.index);
  if (move.is_transferred) counters_.bytes_prefetched += Bytes{mapper_.slot(move.slot).size()};
  table_.notify();
}

void PageMoves::refuse(PageIndex index) {
  ++counters_.refused_hints;
  table_[index].state = PageState::kNone;
  table_.notify();
}

PageMoves::Move PageMoves::start_leaving(Lock& lock, PageIndex index) {
  table_.become_leaving(index);
  ++leaving_;
  const Page& page = table_[index];
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

bool PageMoves::finish_leaving(Lock& lock, const Move& move) {
  const bool is_refused = move.failure != nullptr;
  if (move.is_transferred) {
    lock.unlock();
    sleep_until(move.end);
    if (is_refused) mapper_.map(move.index, move.slot);
    lock.lock();
  }
  --leaving_;
  note_failure(move.failure);
  table_.notify();
  if (is_refused) {
    table_.become_resident(move.index);
    return false;
  }
  Page& page = table_[move.index];
  page.state = PageState::kNone;
  page.slot = kNoSlot;
  if (move.is_transferred) {
    page.content = Content::kFar;
    counters_.bytes_offloaded += Bytes{mapper_.slot(move.slot).size()};
  }
  return true;
}

void PageMoves::finish_leaving_and_free(Lock& lock, const Move& move) {
  if (finish_leaving(lock, move)) {
    table_.give_slot(move.slot);
  } else {
    ++counters_.refused_hints;
  }
}

void PageMoves::note_touch(Page& page) const noexcept {
  if (!writes_are_declared_) return;  // the page counts as written anyway
  const bool is_declared = page.pins > 0;
  const bool is_read = page.advice == Advice::kReadMostly && page.content != Content::kNone;
  if (!is_declared && !is_read) page.content = Content::kNear;
}

void PageMoves::note_failure(const std::exception_ptr& failure) {
  if (failure_ == nullptr) failure_ = failure;
}

void PageMoves::throw_failure() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace spillway::um
