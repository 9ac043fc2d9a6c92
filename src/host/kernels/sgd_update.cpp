#include "src/host/kernels/kernels.h"
#include "src/host/kernels/update_range.h"

namespace spillway::host {

// Over the whole part: what is padding in parameters, momentum and gradient stays zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part);
  const auto update = [range, op](const auto& operands, const auto& arguments) {
    const float* const old_w = floats(operands.in.parameters) + range.first;
    const float* const old_v = floats(operands.in.momentum);
    const float* const dw = floats(operands.in.dparameters);
    float* const w = floats(operands.out.parameters) + range.first;
    float* const v = floats(operands.out.momentum);
    const float rate = arguments.context->learning_rate;
    // Clang 14 takes no structured bindings into a team.
    const std::size_t count = range.count;
    const std::size_t decayed = range.decayed;
    const SgdOptions options = op.options;
#pragma omp parallel for simd schedule(static) if (parallel : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) {
      const float gradient = dw[i] + (i < decayed ? options.weight_decay : 0.F) * old_w[i];
      const float velocity = options.momentum * old_v[i] + gradient;
      v[i] = velocity;
      w[i] =
          old_w[i] - rate * (options.nesterov ? gradient + options.momentum * velocity : velocity);
    }
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
