#pragma once

#include <span>

#include "src/cuda/ranks/device_communicator.h"
#include "src/ranks/communicator.h"

namespace spillway::cuda {

/// NumberKernels for GPU memory, enqueued on a stream.
class CudaNumberKernels final : public NumberKernels {
 public:
  /// Requires: `stream` outlives this object.
  explicit CudaNumberKernels(const ExchangeStream& stream) : stream_{stream} {}

  void add(std::span<float> to, std::span<const float> numbers) const override;
  void copy(std::span<float> to, std::span<const float> from) const override;
  void divide(std::span<float> numbers, float by) const override;
  void fill(std::span<float> numbers, float value) const override;

 private:
  const ExchangeStream& stream_;
};

}  // namespace spillway::cuda
