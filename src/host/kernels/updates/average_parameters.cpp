#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"

namespace spillway::host {

// Over the whole part: what is padding in both stays zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AverageParameters& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part, false);
  const auto part = static_cast<float>(1 - op.decay);
  const auto update = [range, part](const auto& operands, const auto& /*arguments*/) {
    const float* const w = floats(operands.in.parameters) + range.first;
    const float* const old_average = floats(operands.in.average);
    float* const average = floats(operands.out.average);
    const auto element = [=](std::size_t i) {
      average[i] = old_average[i] + part * (w[i] - old_average[i]);
    };
    update_all(element, range.count);
  };
  return kernel_of(machine, op, update);
}

}  // namespace spillway::host
