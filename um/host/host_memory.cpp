#include "um/host/host_memory.h"

#include "um/error.h"
#include "um/host/available_memory.h"
#include "um/host/mapping.h"

namespace spillway::um {

std::byte* HostMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  // Else the kernel would say yes, and end the process when it runs out of pages.
  const Bytes available = available_memory();
  if (size > available) {
    throw OutOfMemory{"this machine has no " + to_string(size) + " of memory free: " +
                          to_string(available) + " are available; choose a smaller near budget",
                      size};
  }
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
