#pragma once

#include "um/bytes.h"
#include "um/cuda/managed/managed_allocation.h"
#include "um/range.h"

namespace spillway::gpu {

/// Owns one allocation of unified memory, checked against what is free and the limit.
class ManagedBlock {
 public:
  /// Throws: um::Error when there may not be so much.
  ManagedBlock(um::CudaManagedMemory& memory, um::Bytes size)
      : memory_{memory}, range_{memory.allocate(size, /*oversubscribe=*/false), size.count()} {}
  ManagedBlock(const ManagedBlock&) = delete;
  ManagedBlock& operator=(const ManagedBlock&) = delete;
  ~ManagedBlock() { memory_.free(range_.data()); }

  [[nodiscard]] um::Range range() const { return range_; }

 private:
  um::CudaManagedMemory& memory_;
  um::Range range_;
};

}  // namespace spillway::gpu
