#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"

namespace spillway::host {

// All of the part: what is padding in one is in the other.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const TakeParameters& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part, false);
  return kernel_of(machine, op, [range](const auto& operands) {
    const float* const taken = floats(operands.in.taken);
    float* const parameters = floats(operands.out.parameters) + range.first;
    update_all([=](std::size_t i) { parameters[i] = taken[i]; }, range.count);
  });
}

}  // namespace spillway::host
