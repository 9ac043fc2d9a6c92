#pragma once

#include <cuda.h>  // types only: the driver's library is never linked

#include <cstddef>

namespace spillway::um {

/// Entry points of the driver that CUDA 13 added, as its headers declare them; a program built with
/// older headers finds them in a newer driver all the same.
struct Discards {
  using DiscardAndPrefetch = CUresult (*)(CUdeviceptr*, std::size_t*, std::size_t, CUmemLocation*,
                                          std::size_t*, std::size_t, unsigned long long, CUstream);
  using Discard = CUresult (*)(CUdeviceptr*, std::size_t*, std::size_t, unsigned long long,
                               CUstream);

  DiscardAndPrefetch discard_and_prefetch = nullptr;
  Discard discard = nullptr;
  [[nodiscard]] bool are_there() const {
    return discard_and_prefetch != nullptr && discard != nullptr;
  }
};

/// Those of the driver, of this version; none where it is older than 13.0.
[[nodiscard]] Discards find_discards(int driver_version);

}  // namespace spillway::um
