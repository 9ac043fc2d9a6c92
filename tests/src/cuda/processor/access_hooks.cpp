// The functions that GCC's -fsanitize=thread calls in kernels. They use memory_watch.h, which knows
// the kernel's threads, instead of ThreadSanitizer, which only knows the process's.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/src/cuda/processor/grid_run.h"
#include "tests/src/cuda/processor/memory_watch.h"

namespace {

// A device faults where the address is not a multiple of the size.
void note_aligned_access(const void* address, std::size_t size, bool writes, const void* code) {
  using namespace spillway::processor;
  if (is_in_kernel() && reinterpret_cast<std::uintptr_t>(address) % size != 0) {
    report_fault("an access of " + std::to_string(size) + " bytes that is not aligned", code);
  }
  note_access(address, size, writes, code);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
#define SPILLWAY_ACCESS(note, name, size, writes) \
  extern "C" void __tsan_##name(void* address);   \
  void __tsan_##name(void* address) { note(address, size, writes, __builtin_return_address(0)); }
#define SPILLWAY_ACCESSES(size)                                                        \
  SPILLWAY_ACCESS(note_aligned_access, read##size, size, false)                        \
  SPILLWAY_ACCESS(note_aligned_access, write##size, size, true)                        \
  SPILLWAY_ACCESS(spillway::processor::note_access, unaligned_read##size, size, false) \
  SPILLWAY_ACCESS(spillway::processor::note_access, unaligned_write##size, size, true)

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
  spillway::processor::note_access(address, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, unsigned long size) {
  spillway::processor::note_access(address, size, true, __builtin_return_address(0));
}
void __tsan_vptr_update(void** /*address*/, void* /*value*/) {}  // called by host code
int __tsan_atomic32_fetch_add(volatile int* number, int more, int /*order*/) {  // of shared_ptr
  return __atomic_fetch_add(number, more, __ATOMIC_SEQ_CST);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
