#pragma once

#include <span>

namespace spillway {

/// What is computed with numbers that ranks exchange, where these lie. Two spans are of one size,
/// and the same memory or none in common.
///
/// The host's return when it is done. Those of a device enqueue it, behind what its communicator
/// was given before (Communicator::finish()); the bits are the host's.
class NumberKernels {
 public:
  virtual ~NumberKernels() = default;
  /// to[i] += numbers[i]
  virtual void add(std::span<float> to, std::span<const float> numbers) const = 0;
  /// to[i] = from[i]
  virtual void copy(std::span<float> to, std::span<const float> from) const = 0;
  /// numbers[i] /= by
  virtual void divide(std::span<float> numbers, float by) const = 0;
  virtual void fill(std::span<float> numbers, float value) const = 0;
};

/// Those of RAM.
[[nodiscard]] const NumberKernels& host_number_kernels();

}  // namespace spillway
