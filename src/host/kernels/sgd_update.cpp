#include "src/host/kernels/kernels.h"
#include "src/host/kernels/update_range.h"

namespace spillway::host {
namespace {

// Over the whole block: what is padding in parameters, momentum and gradient stays zero.
class SgdUpdateKernel final : public HostKernel {
 public:
  SgdUpdateKernel(const Machine& machine, const SgdUpdate& op)
      : HostKernel{machine, 5},
        range_{UpdateRange::of(machine.layout, op.parameters)},
        options_{op.options} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const float* const old_w = floats(arguments, 0);
    const float* const old_v = floats(arguments, 1);
    const float* const dw = floats(arguments, 2);
    float* const w = floats(arguments, 3);
    float* const v = floats(arguments, 4);
    const float rate = arguments.context->learning_rate;
    // Clang 14 takes no structured bindings into a team.
    const std::size_t count = range_.count;
    const std::size_t decayed = range_.decayed;
    const SgdOptions options = options_;
#pragma omp parallel for simd schedule(static) if (parallel : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) {
      const float gradient = dw[i] + (i < decayed ? options.weight_decay : 0.F) * old_w[i];
      const float velocity = options.momentum * old_v[i] + gradient;
      v[i] = velocity;
      w[i] =
          old_w[i] - rate * (options.nesterov ? gradient + options.momentum * velocity : velocity);
    }
  }

  UpdateRange range_;
  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  return std::make_unique<SgdUpdateKernel>(machine, op);
}

}  // namespace spillway::host
