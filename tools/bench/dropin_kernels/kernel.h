#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tools/bench/dropin_kernels/kernel_memory.h"

namespace spillway::bench {

/// Something that is computed again and again.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void iterate() = 0;
  /// Of the last result: the same in every memory.
  [[nodiscard]] virtual std::uint64_t checksum() const = 0;
};

/// Sorts `bytes` of new random numbers, half of the data: runs that fit are sorted, then merged by
/// twos between two arrays.
[[nodiscard]] std::unique_ptr<Kernel> make_sort(Memory& memory, std::size_t bytes);
/// One Jacobi sweep of a five-point stencil over rows, from one of two arrays to the other.
[[nodiscard]] std::unique_ptr<Kernel> make_stencil(Memory& memory, std::size_t bytes);
/// C = A B in tiles of 256 x 256 floats.
[[nodiscard]] std::unique_ptr<Kernel> make_matmul(Memory& memory, std::size_t bytes);

}  // namespace spillway::bench
