// The functions that GCC's -fsanitize=thread calls in kernels. They use memory_watch.h, which knows
// the kernel's threads, instead of ThreadSanitizer, which only knows the process's.
#include "tests/src/cuda/processor/memory_watch.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
#define SPILLWAY_ACCESS(name, size, alignment, writes)                 \
  extern "C" void __tsan_##name(void* address);                        \
  void __tsan_##name(void* address) {                                  \
    spillway::processor::note_access(address, size, alignment, writes, \
                                     __builtin_return_address(0));     \
  }
#define SPILLWAY_ACCESSES(size)                         \
  SPILLWAY_ACCESS(read##size, size, size, false)        \
  SPILLWAY_ACCESS(write##size, size, size, true)        \
  SPILLWAY_ACCESS(unaligned_read##size, size, 1, false) \
  SPILLWAY_ACCESS(unaligned_write##size, size, 1, true)

SPILLWAY_ACCESSES(1)
SPILLWAY_ACCESSES(2)
SPILLWAY_ACCESSES(4)
SPILLWAY_ACCESSES(8)
SPILLWAY_ACCESSES(16)

extern "C" {
void __tsan_init();
void __tsan_read_range(void* address, unsigned long size);
void __tsan_write_range(void* address, unsigned long size);
void __tsan_vptr_update(void** address, void* value);
int __tsan_atomic32_fetch_add(volatile int* number, int more, int order);
}

void __tsan_init() {}
void __tsan_read_range(void* address, unsigned long size) {
  spillway::processor::note_access(address, size, 1, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, unsigned long size) {
  spillway::processor::note_access(address, size, 1, true, __builtin_return_address(0));
}
void __tsan_vptr_update(void** /*address*/, void* /*value*/) {}  // called by host code
int __tsan_atomic32_fetch_add(volatile int* number, int more, int /*order*/) {  // of shared_ptr
  return __atomic_fetch_add(number, more, __ATOMIC_SEQ_CST);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
