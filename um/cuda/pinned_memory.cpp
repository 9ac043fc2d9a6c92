#include "um/cuda/pinned_memory.h"

#include <new>

#include "um/error.h"

namespace spillway::um {

PinnedMemory::~PinnedMemory() {
  for (const auto& [size, address] : kept_) api_.free_pinned(address);
}

std::byte* PinnedMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  {
    const std::lock_guard lock{mutex_};
    const auto found = kept_.find(size.count());
    if (found != kept_.end()) {
      std::byte* const address = found->second;
      kept_.erase(found);
      return address;
    }
  }
  api_.enter_thread();  // one of our own: only trainings pin memory
  return api_.allocate_pinned(size);
}

void PinnedMemory::free(std::byte* address, Bytes size) noexcept {
  const std::lock_guard lock{mutex_};
  try {
    kept_.emplace(size.count(), address);
  } catch (const std::bad_alloc&) {
    api_.free_pinned(address);
  }
}

}  // namespace spillway::um
