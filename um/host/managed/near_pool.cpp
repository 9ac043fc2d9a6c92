#include "um/host/managed/near_pool.h"

namespace spillway::um {

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
  free_.push_back(slot);  // never more than reserved
}

}  // namespace spillway::um
