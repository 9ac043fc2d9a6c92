#pragma once

#include <cstddef>
#include <memory_resource>

#include "um/bytes.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway::um {

/// A Memory as what containers of the standard library allocate from.
///
/// Thread safety: the memory's.
class PmrMemory final : public std::pmr::memory_resource {
 public:
  /// The memory outlives it.
  explicit PmrMemory(Memory& memory) : memory_{memory} {}

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    expects(alignment <= 4096, "an alignment that every Memory has");
    return memory_.allocate(Bytes{size});
  }
  void do_deallocate(void* address, std::size_t size, std::size_t /*alignment*/) override {
    memory_.free(static_cast<std::byte*>(address), Bytes{size});
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  Memory& memory_;
};

}  // namespace spillway::um
