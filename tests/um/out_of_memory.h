#pragma once

// Replaces operator new. Include it in one source of a separate test program.

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace spillway::um {

/// Makes this thread's next allocation fail.
inline thread_local bool is_next_refused = false;
/// Makes one of this thread's allocations fail, after this many; negative: none.
inline thread_local int allocations_until_refusal = -1;

}  // namespace spillway::um

[[gnu::noinline]] void* operator new(std::size_t size) {
  int& left = spillway::um::allocations_until_refusal;
  const bool is_last = left == 0;
  if (left >= 0) --left;
  const bool is_refused = std::exchange(spillway::um::is_next_refused, false) || is_last;
  void* const memory = is_refused ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
