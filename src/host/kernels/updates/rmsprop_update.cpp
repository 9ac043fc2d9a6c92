#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"
#include "src/ops/update_elements.h"

namespace spillway::host {

// Over the whole part: what is padding in parameters, averages and gradient stays zero, as 0 /
// epsilon is. Without a momentum the operands of the velocity are null.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RmspropUpdate& op) {
  const UpdateRange range =
      UpdateRange::of(machine.layout, op.parameters, op.part, op.options.decays_all);
  const auto update = [range, op](const auto& operands, const auto& arguments) {
    const RmspropElement element{.rates = rmsprop_rates(op.options, *arguments.context),
                                 .decayed = range.decayed,
                                 .old_w = floats(operands.in.parameters) + range.first,
                                 .old_s = floats(operands.in.square_average),
                                 .old_v = floats(operands.in.velocity),
                                 .dw = floats(operands.in.dparameters) + range.gradient,
                                 .w = floats(operands.out.parameters) + range.written,
                                 .s = floats(operands.out.square_average),
                                 .v = floats(operands.out.velocity)};
    update_all(element, range.count);
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
