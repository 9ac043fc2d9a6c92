// Counts the bytes that PyTorch's allocator of ordinary memory holds, when it is preloaded: those
// that libc10.so asks posix_memalign() for. tools/bench/pytorch_promises builds it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kSlots = 1 << 20, kGone = 1 };

static struct {
  uintptr_t address;
  size_t size;
} slots[kSlots];
static atomic_flag is_locked = ATOMIC_FLAG_INIT;
static long long held, peak;
static uintptr_t library_begin;  // of libc10.so, once it has called

long long tensor_bytes_held(void) { return held; }
long long tensor_bytes_peak(void) { return peak; }
void tensor_bytes_forget_peak(void) { peak = held; }

static void lock(void) {
  while (atomic_flag_test_and_set_explicit(&is_locked, memory_order_acquire)) {
  }
}

static void unlock(void) { atomic_flag_clear_explicit(&is_locked, memory_order_release); }

static unsigned first_slot(uintptr_t address) {
  return ((unsigned)(address >> 6) * 2654435761U) & (kSlots - 1);
}

static int is_of_libc10(uintptr_t caller) {
  const uintptr_t most_code = 8U << 20;
  if (library_begin != 0) return caller - library_begin < most_code;
  Dl_info found;
  if (!dladdr((void*)caller, &found) || !found.dli_fname || !strstr(found.dli_fname, "libc10.so")) {
    return 0;
  }
  library_begin = (uintptr_t)found.dli_fbase;
  return 1;
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  static int (*next)(void**, size_t, size_t);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "posix_memalign");
  const int status = next(out, alignment, size);
  if (status != 0 || !is_of_libc10((uintptr_t)__builtin_return_address(0))) return status;
  lock();
  unsigned at = first_slot((uintptr_t)*out);
  while (slots[at].address > kGone) at = (at + 1) & (kSlots - 1);
  slots[at].address = (uintptr_t)*out;
  slots[at].size = size;
  held += (long long)size;
  if (held > peak) peak = held;
  unlock();
  return status;
}

void free(void* memory) {
  static void (*next)(void*);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "free");
  if (memory && library_begin != 0) {
    lock();
    unsigned at = first_slot((uintptr_t)memory);
    while (slots[at].address != 0 && slots[at].address != (uintptr_t)memory) {
      at = (at + 1) & (kSlots - 1);
    }
    if (slots[at].address != 0) {
      held -= (long long)slots[at].size;
      slots[at].address = kGone;
    }
    unlock();
  }
  next(memory);
}
