#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"
#include "src/ops/update_elements.h"

namespace spillway::host {

// Over the whole part: what is padding in parameters, momentum and gradient stays zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  const UpdateRange range =
      UpdateRange::of(machine.layout, op.parameters, op.part, op.options.decays_all);
  const auto update = [range, op](const auto& operands, const auto& arguments) {
    const SgdElement element{.options = op.options,
                             .rate = arguments.context->learning_rate,
                             .decayed = range.decayed,
                             .old_w = floats(operands.in.parameters) + range.first,
                             .old_v = floats(operands.in.momentum),
                             .dw = floats(operands.in.dparameters) + range.gradient,
                             .w = floats(operands.out.parameters) + range.written,
                             .v = floats(operands.out.momentum)};
    update_all(element, range.count);
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
