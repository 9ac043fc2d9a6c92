#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/ops/operation.h"
#include "src/ops/parameter.h"

namespace spillway {

struct StepContext;

/// An update made ready to run on the far side: on the processor beside far memory, over what lies
/// there.
///
/// Thread safety: one thread at a time, whichever.
class FarKernel {
 public:
  virtual ~FarKernel() = default;
  /// The floats of the parameter block that it updates. Gradient and numbers have as many.
  [[nodiscard]] virtual FloatRange range() const = 0;
  /// Updates the floats `piece` of these, counted from range().begin. All pointers are to their
  /// first one: `updated` are parameters and then the optimizer's numbers, in the order of the
  /// operation's operands. Any pieces give the bits of all at once, on the host those of the
  /// operation's Kernel.
  virtual void run(const StepContext& context, const FloatRange& piece,
                   std::span<float* const> updated, const float* gradient) = 0;
};

/// The far kernel of SgdUpdate, AdamUpdate or RmspropUpdate, which goes over the floats `range` of
/// the block of parameters. Weight decay applies to the first `decayed` of them. One thread
/// computes.
[[nodiscard]] std::unique_ptr<FarKernel> make_far_kernel(const Operation& update,
                                                         const FloatRange& range,
                                                         std::size_t decayed);

}  // namespace spillway
