#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"

namespace spillway::host {

// Over the whole part: what is padding in both stays zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AccumulateGradients& op) {
  const std::size_t count = UpdateRange::of(machine.layout, op.parameters, op.part, false).count;
  return kernel_of(machine, op, [count](const auto& operands) {
    const float* const old_sum = floats(operands.in.sum);
    const float* const part = floats(operands.in.dparameters);
    float* const sum = floats(operands.out.sum);
#pragma omp parallel for simd schedule(static) if (parallel : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) sum[i] = old_sum[i] + part[i];
  });
}

}  // namespace spillway::host
