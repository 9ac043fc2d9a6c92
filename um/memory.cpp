#include "um/memory.h"

#include "um/error.h"

namespace spillway::um {

bool Ledger::try_charge(Bytes size) noexcept {
  std::uint64_t now = in_use_.load();
  do {
    if (size.count() > limit_ || now > limit_ - size.count()) return false;
  } while (!in_use_.compare_exchange_weak(now, now + size.count()));
  const std::uint64_t used = now + size.count();
  std::uint64_t peak = peak_.load();
  while (peak < used && !peak_.compare_exchange_weak(peak, used)) {
  }
  return true;
}

void Ledger::charge(Bytes size) {
  if (try_charge(size)) return;
  throw OutOfMemory{"near memory is full: " + to_string(size) + " more do not fit beside " +
                    to_string(in_use()) + " in a budget of " + to_string(limit())};
}

std::byte* LimitedMemory::allocate(Bytes size) {
  ledger_->charge(size);
  try {
    return upstream_->allocate(size);
  } catch (...) {
    ledger_->release(size);
    throw;
  }
}

void LimitedMemory::free(std::byte* address, Bytes size) noexcept {
  upstream_->free(address, size);
  ledger_->release(size);
}

}  // namespace spillway::um
