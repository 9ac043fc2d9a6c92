#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/ops/operation.h"
#include "src/ops/parameter.h"

namespace spillway {

struct StepContext;

/// An update prepared to run on the far side: on the processor next to far memory, on data there.
///
/// Thread safety: any thread, but one at a time.
class FarKernel {
 public:
  virtual ~FarKernel() = default;
  /// Returns the floats of the parameter block that the kernel updates. The gradient and the
  /// optimizer state have as many.
  [[nodiscard]] virtual FloatRange range() const = 0;
  /// Updates the floats `piece`, counted from range().begin. All pointers point to the first float
  /// of the piece. `updated` lists parameters, then optimizer state, in the order of the
  /// operation's operands. Results do not depend on how the range is cut into pieces; on the host
  /// they are the bits of the operation's Kernel.
  virtual void run(const StepContext& context, const FloatRange& piece,
                   std::span<float* const> updated, const float* gradient) = 0;
};

/// Returns the far kernel of an update for the floats `range` of the parameter block. Weight decay
/// applies to the first `decayed` of them. Uses a single thread.
[[nodiscard]] std::unique_ptr<FarKernel> make_far_kernel(const UpdateParameters& update,
                                                         const FloatRange& range,
                                                         std::size_t decayed);

}  // namespace spillway
