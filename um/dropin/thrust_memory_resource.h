#pragma once

#include <thrust/memory.h>
#include <thrust/mr/memory_resource.h>

#include <cstddef>
#include <cstdio>
#include <new>

#include "um/dropin/spillway_um.h"

namespace spillway::um {

/// A space for Thrust's containers, through thrust::mr::allocator<T, ThrustMemoryResource<...>>.
/// `Pointer` says which system's algorithms a container's iterators run: thrust::tbb::pointer<void>
/// with a host space, thrust::universal_ptr<void> with a GPU's; void* is the plain host's. Memory
/// is freed in the order of the default stream.
///
/// The space outlives it and is not its own. It is equal to itself alone; CCCL 3.0 takes any two
/// resources for equal (`rhs.is_equal(rhs)`): move no container there between two of them.
/// Throws: std::bad_alloc; spillway_um_last_error() says why. A free that is refused writes the
/// same to standard error. Thread safety: as the space's.
template <class Pointer = void*>
class ThrustMemoryResource final : public thrust::mr::memory_resource<Pointer> {
 public:
  explicit ThrustMemoryResource(spillway_um_space space) noexcept : space_{space} {}

  [[nodiscard]] spillway_um_space space() const noexcept { return space_; }

  [[nodiscard]] Pointer do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* address = nullptr;
    const std::size_t size = bytes == 0 ? 1 : bytes;
    if (spillway_um_allocate(space_, size, alignment, &address) != SPILLWAY_UM_OK) {
      throw std::bad_alloc{};
    }
    return Pointer{address};
  }
  void do_deallocate(Pointer address, std::size_t /*bytes*/, std::size_t /*alignment*/) override {
    if (spillway_um_free_async(space_, thrust::raw_pointer_cast(address), nullptr) !=
        SPILLWAY_UM_OK) {
      static_cast<void>(std::fprintf(stderr, "%s\n", spillway_um_last_error()));
    }
  }

 private:
  spillway_um_space space_;
};

}  // namespace spillway::um
