#include <cmath>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/update_range.h"
#include "src/ops/adam_rates.h"

namespace spillway::host {

// Over the whole part: what is padding in parameters, moments and gradient stays zero, as 0 /
// epsilon is.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AdamUpdate& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part);
  const auto update = [range, op](const auto& operands, const auto& arguments) {
    const float* const old_w = floats(operands.in.parameters) + range.first;
    const float* const old_m = floats(operands.in.first_moment);
    const float* const old_v = floats(operands.in.second_moment);
    const float* const dw = floats(operands.in.dparameters);
    float* const w = floats(operands.out.parameters) + range.first;
    float* const m = floats(operands.out.first_moment);
    float* const v = floats(operands.out.second_moment);
    const AdamRates rates = adam_rates(op.options, *arguments.context);
    // Clang 14 takes no structured bindings into a team.
    const std::size_t count = range.count;
    const std::size_t decayed = range.decayed;
#pragma omp parallel for simd schedule(static) if (parallel : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) {
      const float gradient = dw[i] + (i < decayed ? rates.decay : 0.F) * old_w[i];
      const float first = old_m[i] + rates.new_first * (gradient - old_m[i]);
      const float second = rates.old_second * old_v[i] + rates.new_second * gradient * gradient;
      const float size = std::sqrt(second) / rates.root + rates.epsilon;
      m[i] = first;
      v[i] = second;
      w[i] = (i < decayed ? rates.shrink : 1.F) * old_w[i] - rates.step_size * (first / size);
    }
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
