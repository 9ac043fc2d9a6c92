#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"
#include "src/ops/update_elements.h"

namespace spillway::host {

// Over the whole part: what is padding in parameters, moments and gradient stays zero, as 0 /
// epsilon is.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AdamUpdate& op) {
  const UpdateRange range =
      UpdateRange::of(machine.layout, op.parameters, op.part, op.options.decays_all);
  const auto update = [range, op](const auto& operands, const auto& arguments) {
    const AdamElement element{.rates = adam_rates(op.options, *arguments.context),
                              .decayed = range.decayed,
                              .old_w = floats(operands.in.parameters) + range.first,
                              .old_m = floats(operands.in.first_moment),
                              .old_v = floats(operands.in.second_moment),
                              .dw = floats(operands.in.dparameters) + range.gradient,
                              .w = floats(operands.out.parameters) + range.written,
                              .m = floats(operands.out.first_moment),
                              .v = floats(operands.out.second_moment)};
    update_all(element, range.count);
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
