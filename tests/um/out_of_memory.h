#pragma once

// Replaces operator new: for one source of a test program of its own.

#include <cstddef>
#include <cstdlib>
#include <new>

namespace spillway::um {

inline thread_local bool is_out_of_memory = false;

/// While it lives, this thread can allocate nothing.
class OutOfMemoryHere {
 public:
  OutOfMemoryHere() { is_out_of_memory = true; }
  OutOfMemoryHere(const OutOfMemoryHere&) = delete;
  OutOfMemoryHere& operator=(const OutOfMemoryHere&) = delete;
  ~OutOfMemoryHere() { is_out_of_memory = false; }
};

}  // namespace spillway::um

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = spillway::um::is_out_of_memory ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
