#pragma once

#include <thrust/memory.h>
#include <thrust/mr/memory_resource.h>

#include <cstddef>
#include <cstdio>
#include <new>

#include "um/dropin/spillway_um.h"

namespace spillway::um {

/// Adapts a space to Thrust's containers, through thrust::mr::allocator<T,
/// ThrustMemoryResource<...>>. `Pointer` selects the system that runs algorithms on a container's
/// iterators: thrust::tbb::pointer<void> for a host space, thrust::universal_ptr<void> for a GPU
/// space, void* for the plain host. Memory is freed in the order of the default stream.
///
/// Borrows the space, which must outlive it. A resource equals only itself. CCCL 3.0 considers any
/// two resources equal (`rhs.is_equal(rhs)`), so do not move a container between two of them.
/// Throws: std::bad_alloc; spillway_um_last_error() says why. A refused free writes this text to
/// standard error. Thread safety: that of the space.
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
