#include <deque>
#include <utility>

#include "um/error.h"
#include "um/host/managed/residency.h"

namespace spillway::um {
namespace {

bool is_settled(const Page& page) {
  return page.state != PageState::kFilling && page.state != PageState::kLeaving;
}

void expect_unused(const Page& page) {
  expects(page.pins == 0, "a discarded page is not an operand of a launch under way");
}

}  // namespace

std::exception_ptr Residency::fetch(PageSpan pages) noexcept {
  Lock lock{mutex_};
  Batch batch{.moves = {}, .failure = nullptr};
  const auto finish_down_to = [&](std::size_t count) {
    while (batch.moves.size() > count) {
      finish_filling(lock, take_first(batch), Cause::kHint);
    }
  };
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = pages_[index];
    if (!is_settled(page)) finish_down_to(0);  // the thread that moves it may wait for these
    wait_until_settled(lock, page);
    if (page.state == PageState::kResident) {
      renew(index);
      continue;
    }
    if (page.state == PageState::kDead) unmap_released(index);
    page.state = PageState::kFilling;
    Room room = find_room(lock);
    if (!room.slot && !batch.moves.empty()) {
      finish_down_to(0);  // now they may be evicted
      room = find_room(lock);
    }
    if (!room.slot) {
      if (batch.failure == nullptr) batch.failure = room.failure;
      refuse(index);
      continue;
    }
    const Origin origin = page.content == Content::kFar ? Origin::kTransfer : Origin::kBlank;
    batch.moves.push_back(start_filling(lock, index, *room.slot, origin));
    finish_down_to(depth_);
  }
  finish_down_to(0);
  return batch.failure;
}

std::exception_ptr Residency::offload(PageSpan pages) noexcept {
  Lock lock{mutex_};
  Batch batch{.moves = {}, .failure = nullptr};
  const auto finish_down_to = [&](std::size_t count) {
    while (batch.moves.size() > count) {
      finish_leaving_and_free(lock, take_first(batch));
    }
  };
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = pages_[index];
    if (!is_settled(page)) finish_down_to(0);
    wait_until_settled(lock, page);
    if (page.state != PageState::kResident) continue;
    if (page.pins > 0) {
      ++counters_.refused_hints;
      continue;
    }
    batch.moves.push_back(start_leaving(lock, index));
    finish_down_to(depth_);
  }
  finish_down_to(0);
  return batch.failure;
}

Residency::Move Residency::take_first(Batch& batch) {
  Move move = std::move(batch.moves.front());
  batch.moves.pop_front();
  if (batch.failure == nullptr) batch.failure = move.failure;
  return move;
}

void Residency::populate(PageSpan pages) {
  Lock lock{mutex_};
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = pages_[index];
    wait_until_settled(lock, page);
    if (page.state == PageState::kResident) {
      renew(index);
      continue;
    }
    page.content = Content::kNone;
    if (page.state == PageState::kDead) {
      if (reuse_mapping(index)) continue;
      unmap_released(index);
    }
    if (take_slot(index)) continue;
    page.state = PageState::kFilling;
    if (const auto slot = find_room(lock).slot) {
      finish_filling(lock, start_filling(lock, index, *slot, Origin::kAbandoned), Cause::kHint);
    } else {
      refuse(index);
    }
  }
}

/// Requires: the page is filling and has no slot.
void Residency::refuse(PageIndex index) {
  ++counters_.refused_hints;
  pages_[index].state = PageState::kNone;
  changed_.notify_all();
}

void Residency::discard(PageSpan pages) {
  Lock lock{mutex_};
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    expect_unused(pages_[index]);  // all or none
  }
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    Page& page = pages_[index];
    wait_until_settled(lock, page);
    expect_unused(page);            // a use may have begun meanwhile
    page.content = Content::kNone;  // nothing to save
    if (page.state != PageState::kResident) continue;
    if (keeps_dead_) {
      release_lazily(index);
    } else {
      finish_leaving_and_free(lock, start_leaving(lock, index));
    }
    ++counters_.discarded_pages;
  }
}

// Mapping a page and unmapping it interrupts all processors. A step's blocks come back to the
// addresses of dead ones, mostly soon: then nothing has to be done.

/// Requires: the page is resident, without content and not in use.
void Residency::release_lazily(PageIndex index) {
  order_.remove(index);
  dead_.append(index, Advice::kNone);
  pages_[index].state = PageState::kDead;
  pool_.set_aside();
  changed_.notify_all();
}

/// Makes a dead page resident, without content. False when there is no near memory left to charge.
bool Residency::reuse_mapping(PageIndex index) {
  if (!pool_.take_back()) return false;
  dead_.remove(index);
  Page& page = pages_[index];
  page.state = PageState::kResident;
  if (page.pins == 0) order_.append(index, page.advice);
  return true;
}

/// Gives a page that is not near the memory of a dead one, where no other is free. False when that
/// cannot be.
bool Residency::take_slot(PageIndex index) {
  const auto dead = dead_.first();
  if (!dead || pool_.has_free() || !pool_.take_back()) return false;
  dead_.remove(*dead);
  Page& from = pages_[*dead];
  Page& to = pages_[index];
  mapper_.remap(*dead, index, from.slot);
  to.slot = std::exchange(from.slot, kNoSlot);
  from.state = PageState::kNone;
  to.state = PageState::kResident;
  if (to.writers > 0) to.content = Content::kNear;
  if (to.pins == 0) order_.append(index, to.advice);
  return true;
}

/// Unmaps a dead page and frees its slot.
void Residency::unmap_released(PageIndex index) {
  Page& page = pages_[index];
  dead_.remove(index);
  mapper_.unmap(index, page.slot);
  pool_.give_aside(page.slot);
  page.slot = kNoSlot;
  page.state = PageState::kNone;
}

void Residency::advise(PageSpan pages, Advice advice) {
  const Lock lock{mutex_};
  for (PageIndex index = pages.begin; index < pages.end; ++index) {
    pages_[index].advice = advice;
    renew(index);
  }
}

/// Makes a page that may be evicted the one used last.
void Residency::renew(PageIndex index) {
  const Page& page = pages_[index];
  if (page.state != PageState::kResident || page.pins > 0) return;
  order_.remove(index);
  order_.append(index, page.advice);
}

// --- uses

void Residency::begin_use(std::span<const Use> operands, const PageGrid& grid) {
  const Lock lock{mutex_};
  throw_failure();
  for (const Use& use : operands) static_cast<void>(grid.touched(use.range));  // all or none
  for (const Use& use : operands) {
    const PageSpan pages = grid.touched(use.range);
    for (PageIndex index = pages.begin; index < pages.end; ++index) {
      begin_page_use(index, PageAccess::of(use, grid, index));
    }
  }
  ++launches_;
}

void Residency::check() const {
  const Lock lock{mutex_};
  throw_failure();
}

void Residency::begin_page_use(PageIndex index, PageAccess access) {
  Page& page = pages_[index];
  if (page.state == PageState::kDead && !reuse_mapping(index))
    unmap_released(index);  // so that a touch faults
  const bool is_resident = page.state == PageState::kResident;
  if (is_resident && page.pins == 0) order_.remove(index);
  ++page.pins;
  if (!access.writes) return;
  ++page.writers;
  if (access.overwrites) ++page.overwriters;
  if (is_resident) page.content = Content::kNear;
}

void Residency::end_use(std::span<const Use> operands, const PageGrid& grid) noexcept {
  const Lock lock{mutex_};
  for (const Use& use : operands) {
    const PageSpan pages = grid.touched(use.range);
    for (PageIndex index = pages.begin; index < pages.end; ++index) {
      end_page_use(index, PageAccess::of(use, grid, index));
    }
  }
  --launches_;
  changed_.notify_all();
}

void Residency::end_page_use(PageIndex index, PageAccess access) noexcept {
  Page& page = pages_[index];
  --page.pins;
  if (access.writes) {
    --page.writers;
    if (access.overwrites) --page.overwriters;
    if (page.state == PageState::kFilling) page.was_written_while_filling = true;
  }
  if (page.pins == 0 && page.state == PageState::kResident) order_.append(index, page.advice);
}

}  // namespace spillway::um
