#include "um/host/host_memory.h"

#include "um/error.h"
#include "um/machine/available_memory.h"
#include "um/machine/mapping.h"

namespace spillway::um {

std::byte* HostMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  expect_available(size, "take " + to_string(size) + " of near memory", "use a smaller budget");
  const Range memory = map_memory(size);
  try {
    touch_memory(memory);
  } catch (...) {
    unmap_memory(memory);
    throw;
  }
  return memory.data();
}

void HostMemory::free(std::byte* address, Bytes size) noexcept {
  unmap_memory({address, size.count()});
}

}  // namespace spillway::um
