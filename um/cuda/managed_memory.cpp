#include "um/cuda/managed_memory.h"

#include <cstdint>

#include "um/cuda/managed_room.h"
#include "um/error.h"

namespace spillway::um {

std::byte* CudaManagedMemory::allocate(Bytes size, bool oversubscribe) {
  expect_managed_room(size, {.free = api_.memory().free,
                             .taken = Bytes{taken_},
                             .limit = limit_,
                             .oversubscribe = oversubscribe});
  std::byte* const address = api_.allocate_managed(size);
  taken_ += size.count();
  try {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(address) % (2_MiB).count() == 0;
    if (!is_aligned) throw Error{"the driver gave unified memory that does not begin with a page"};
    // Once, here: later advice would make every move and page fault wait for it.
    api_.advise({address, size.count()}, Advice::kPreferNear);
  } catch (...) {
    free(address, size);
    throw;
  }
  return address;
}

void CudaManagedMemory::free(std::byte* address, Bytes size) noexcept {
  api_.free_managed(address);
  taken_ -= size.count();
}

}  // namespace spillway::um
