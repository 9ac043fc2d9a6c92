#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>

#include "um/dropin/spillway_um.h"

namespace spillway::um {

/// Adapts a space to containers of the C++17 standard library; needs only spillway_um.h. Meant for
/// large blocks: an allocation takes at least 64 bytes, and a page without allocations is dropped.
///
/// Borrows the space, which must outlive it. Throws: std::bad_alloc; spillway_um_last_error() says
/// why. Thread safety: that of the space.
class MemoryResource final : public std::pmr::memory_resource {
 public:
  explicit MemoryResource(spillway_um_space space) noexcept : space_{space} {}

  [[nodiscard]] spillway_um_space space() const noexcept { return space_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* address = nullptr;
    const std::size_t size = bytes == 0 ? 1 : bytes;  // the standard allows zero bytes
    if (spillway_um_allocate(space_, size, alignment, &address) != SPILLWAY_UM_OK) {
      throw std::bad_alloc{};
    }
    return address;
  }
  void do_deallocate(void* address, std::size_t /*bytes*/, std::size_t /*alignment*/) override {
    static_cast<void>(spillway_um_free(space_, address));
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* const same = dynamic_cast<const MemoryResource*>(&other);
    return same != nullptr && same->space_.id == space_.id;
  }

  spillway_um_space space_;
};

}  // namespace spillway::um
