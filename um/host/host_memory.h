#pragma once

#include "um/memory.h"

namespace spillway::um {

/// The RAM of this machine as near memory: in huge pages where it can be, with physical memory from
/// the start, so that first use is as fast as any later use.
class HostMemory final : public Memory {
 public:
  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;
};

}  // namespace spillway::um
