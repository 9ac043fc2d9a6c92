#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"
#include "src/ops/update_elements.h"

namespace spillway::host {

// Over the whole part: what is padding in parameters, averages and gradient stays zero, as 0 /
// epsilon is.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RmspropUpdate& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part);
  const auto update = [range, op](const auto& operands, const auto& arguments) {
    RmspropElement element = rmsprop_element(op.options, *arguments.context, range.decayed);
    element.old_w = floats(operands.in.parameters) + range.first;
    element.old_s = floats(operands.in.square_average);
    element.dw = floats(operands.in.dparameters);
    element.w = floats(operands.out.parameters) + range.first;
    element.s = floats(operands.out.square_average);
    if (op.has_velocity()) {
      element.old_v = floats(operands.in.velocity);
      element.v = floats(operands.out.velocity);
    }
    const std::size_t count = range.count;
#pragma omp parallel for simd schedule(static) firstprivate(element) if (parallel \
                                                                         : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) element(i);
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
