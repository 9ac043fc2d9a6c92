#include <cmath>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/update_range.h"
#include "src/ops/adam_rates.h"

namespace spillway::host {
namespace {

// Over the whole block: what is padding in parameters, moments and gradient stays zero, as 0 /
// epsilon is.
class AdamUpdateKernel final : public HostKernel {
 public:
  AdamUpdateKernel(const Machine& machine, const AdamUpdate& op)
      : HostKernel{machine, 7},
        range_{UpdateRange::of(machine.layout, op.parameters)},
        options_{op.options} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const float* const old_w = floats(arguments, 0);
    const float* const old_m = floats(arguments, 1);
    const float* const old_v = floats(arguments, 2);
    const float* const dw = floats(arguments, 3);
    float* const w = floats(arguments, 4);
    float* const m = floats(arguments, 5);
    float* const v = floats(arguments, 6);
    const AdamRates rates = adam_rates(options_, *arguments.context);
    // Clang 14 takes no structured bindings into a team.
    const std::size_t count = range_.count;
    const std::size_t decayed = range_.decayed;
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
  }

  UpdateRange range_;
  AdamOptions options_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AdamUpdate& op) {
  return std::make_unique<AdamUpdateKernel>(machine, op);
}

}  // namespace spillway::host
