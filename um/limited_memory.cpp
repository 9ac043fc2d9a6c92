#include "um/limited_memory.h"

namespace spillway::um {

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
