#include "um/host/managed/page_table.h"

#include <atomic>
#include <utility>

#include "um/error.h"

namespace spillway::um {
namespace {

std::uint64_t ring_of(Advice advice) {
  if (advice == Advice::kPreferFar) return 0;
  return advice == Advice::kPreferNear ? 2 : 1;
}

std::atomic<std::uint64_t> stays = 0;  // counts over all pages of the process

}  // namespace

EvictionOrder::EvictionOrder(PageIndex pages) : pages_{pages}, links_(pages_ + kRings) {
  for (std::uint64_t head = pages_; head < pages_ + kRings; ++head) links_[head] = {head, head};
}

void EvictionOrder::append(PageIndex page, Advice advice) noexcept {
  const std::uint64_t head = pages_ + ring_of(advice);
  const std::uint64_t newest = links_[head].older;
  links_[page] = {.older = newest, .newer = head};
  links_[newest].newer = page;
  links_[head].older = page;
}

void EvictionOrder::remove(PageIndex page) noexcept {
  const Links links = links_[page];
  links_[links.older].newer = links.newer;
  links_[links.newer].older = links.older;
}

std::optional<PageIndex> EvictionOrder::first() const noexcept {
  for (std::uint64_t head = pages_; head < pages_ + kRings; ++head) {
    if (links_[head].newer != head) return static_cast<PageIndex>(links_[head].newer);
  }
  return std::nullopt;
}

NearPool::NearPool(SlotIndex slots, Bytes page, Ledger& ledger)
    : slots_{slots}, page_{page}, ledger_{ledger} {
  free_.reserve(slots);
  for (SlotIndex slot = slots; slot > 0; --slot) free_.push_back(slot - 1);
}

NearPool::~NearPool() { ledger_.release((slots_ - free_.size() - aside_) * page_); }

std::optional<SlotIndex> NearPool::take() noexcept {
  if (free_.empty() || !ledger_.try_charge(page_)) return std::nullopt;
  const SlotIndex slot = free_.back();
  free_.pop_back();
  return slot;
}

void NearPool::give(SlotIndex slot) noexcept {
  set_aside();
  give_aside(slot);
}

void NearPool::set_aside() noexcept {
  ++aside_;
  ledger_.release(page_);
}

bool NearPool::take_back() noexcept {
  if (!ledger_.try_charge(page_)) return false;
  --aside_;
  return true;
}

void NearPool::give_aside(SlotIndex slot) noexcept {
  --aside_;
  free_.push_back(slot);  // never exceeds the reserved capacity
}

PageTable::PageTable(const PageGeometry& geometry, PageMapper& mapper, Ledger& ledger)
    : mapper_{mapper},
      pages_(geometry.pages),
      order_{geometry.pages},
      released_{geometry.pages},
      pool_{geometry.slots, geometry.page, ledger} {}

void PageTable::wait_until_settled(Lock& lock, const Page& page) {
  while (!page.is_settled()) changed_.wait(lock);
}

std::optional<SlotIndex> PageTable::take_free_slot() {
  while (true) {
    if (const auto slot = pool_.take()) return slot;
    const auto released = released_.first();
    if (!released || pool_.has_free()) return std::nullopt;
    unmap_released(*released);
  }
}

void PageTable::become_resident(PageIndex index) {
  Page& page = pages_[index];
  page.state = PageState::kResident;
  page.stay = ++stays;
  if (page.pins == 0) order_.append(index, page.advice);
}

void PageTable::become_leaving(PageIndex index) {
  Page& page = pages_[index];
  expects(page.state == PageState::kResident && page.pins == 0, "a page in use does not leave");
  order_.remove(index);
  page.state = PageState::kLeaving;
}

void PageTable::renew(PageIndex index) {
  const Page& page = pages_[index];
  if (page.state != PageState::kResident || page.pins > 0) return;
  order_.remove(index);
  order_.append(index, page.advice);
}

void PageTable::release_lazily(PageIndex index) {
  order_.remove(index);
  released_.append(index, Advice::kNone);
  pages_[index].state = PageState::kReleased;
  pool_.set_aside();
  changed_.notify_all();
}

bool PageTable::reuse_mapping(PageIndex index) {
  if (!pool_.take_back()) return false;
  released_.remove(index);
  become_resident(index);
  return true;
}

bool PageTable::take_slot(PageIndex index) {
  const auto released = released_.first();
  if (!released || pool_.has_free() || !pool_.take_back()) return false;
  released_.remove(*released);
  Page& from = pages_[*released];
  Page& to = pages_[index];
  mapper_.remap(*released, index, from.slot);
  to.slot = std::exchange(from.slot, kNoSlot);
  from.state = PageState::kNone;
  if (to.writers > 0) to.content = Content::kNear;
  become_resident(index);
  return true;
}

void PageTable::unmap_released(PageIndex index) {
  Page& page = pages_[index];
  released_.remove(index);
  mapper_.unmap(index, page.slot);
  pool_.give_aside(page.slot);
  page.slot = kNoSlot;
  page.state = PageState::kNone;
}

void PageTable::begin_use(std::span<const Use> operands, const PageGrid& grid) {
  for (const Use& use : operands) static_cast<void>(grid.touched(use.range));  // all or none
  for (const Use& use : operands) {
    const PageSpan pages = grid.touched(use.range);
    for (PageIndex index = pages.begin; index < pages.end; ++index) {
      begin_page_use(index, PageAccess::of(use, grid, index));
    }
  }
  ++launches_;
}

void PageTable::begin_page_use(PageIndex index, PageAccess access) {
  Page& page = pages_[index];
  if (page.state == PageState::kReleased && !reuse_mapping(index)) {
    unmap_released(index);  // makes a touch fault
  }
  const bool is_resident = page.state == PageState::kResident;
  if (is_resident && page.pins == 0) order_.remove(index);
  ++page.pins;
  if (!access.writes) return;
  ++page.writers;
  if (access.overwrites) ++page.overwriters;
  if (is_resident) page.content = Content::kNear;
}

void PageTable::end_use(std::span<const Use> operands, const PageGrid& grid) noexcept {
  for (const Use& use : operands) {
    const PageSpan pages = grid.touched(use.range);
    for (PageIndex index = pages.begin; index < pages.end; ++index) {
      end_page_use(index, PageAccess::of(use, grid, index));
    }
  }
  --launches_;
  changed_.notify_all();
}

void PageTable::end_page_use(PageIndex index, PageAccess access) noexcept {
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
