// Replaces operator new, so that a schedule can make allocations of the program fail. Allocations
// of its libraries do not count.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/world/faults.h"

namespace {

using spillway::world::Call;
using spillway::world::fails;
using spillway::world::is_of_program;

void* allocated(std::size_t size, std::size_t alignment, const void* caller) {
  // Never fails while the command line is parsed: CLI11 allocates in noexcept functions.
  const bool is_reading_words = !spillway::world::has_called(Call::kOpen);
  if (!is_reading_words && is_of_program(caller) && fails(Call::kNew)) return nullptr;
  const std::size_t rounded =
      (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(size)
                                                : std::aligned_alloc(alignment, rounded);
}

void* allocated_or_thrown(std::size_t size, std::size_t alignment, const void* caller) {
  if (void* const memory = allocated(size, alignment, caller)) return memory;
  throw std::bad_alloc{};
}

}  // namespace

void* operator new(std::size_t size) {
  return allocated_or_thrown(size, 1, __builtin_return_address(0));
}
void* operator new[](std::size_t size) {
  return allocated_or_thrown(size, 1, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocated_or_thrown(size, static_cast<std::size_t>(alignment),
                             __builtin_return_address(0));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocated_or_thrown(size, static_cast<std::size_t>(alignment),
                             __builtin_return_address(0));
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocated(size, 1, __builtin_return_address(0));
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocated(size, 1, __builtin_return_address(0));
}
