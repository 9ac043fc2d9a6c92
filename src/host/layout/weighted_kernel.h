#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "src/host/layout/host_kernel.h"
#include "src/host/layout/parameter_layout.h"
#include "src/ops/backend.h"

namespace spillway::host {

enum class Direction { kForward, kBackwardData, kBackwardWeights };

/// One of the three primitives of a layer with weights.
struct WeightedPrimitive {
  dnnl::primitive_desc primitive;
  Direction direction;
  Desc block_weights;  ///< the weights as the parameter block has them
  ParameterParts parts;
};

/// Whether oneDNN has nothing better than its reference implementation, which is hundreds of times
/// slower than its others.
[[nodiscard]] bool is_reference(const WeightedPrimitive& weighted);

/// Room for the weights in the primitive's own format, where that is not the block's, and the
/// scratchpad.
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const WeightedPrimitive& weighted);

/// Operands: x, parameters -> y; dy, parameters -> dx; or x, dy -> dparameters.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const WeightedPrimitive& weighted);

}  // namespace spillway::host
