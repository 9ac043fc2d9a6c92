#include "src/host/kernels.h"

namespace spillway::host {
namespace {

// Fewer elements than this are updated faster by one thread than another one wakes up.
constexpr std::size_t kWorthATeam = 1U << 15U;

// Over the whole block: what is padding in parameters, momentum and gradient stays zero.
class SgdUpdateKernel final : public HostKernel {
 public:
  SgdUpdateKernel(const Machine& machine, const SgdUpdate& op)
      : HostKernel{machine, 5},
        count_{parts_of(machine.layout, op.parameters).total},
        momentum_{op.momentum},
        weight_decay_{op.weight_decay} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const float* const old_w = floats(arguments, 0);
    const float* const old_v = floats(arguments, 1);
    const float* const dw = floats(arguments, 2);
    float* const w = floats(arguments, 3);
    float* const v = floats(arguments, 4);
    const float rate = arguments.context->learning_rate;
#pragma omp parallel for simd schedule(static) if (parallel : count_ >= kWorthATeam)
    for (std::size_t i = 0; i < count_; ++i) {
      const float velocity = momentum_ * old_v[i] + (dw[i] + weight_decay_ * old_w[i]);
      v[i] = velocity;
      w[i] = old_w[i] - rate * velocity;
    }
  }

  std::size_t count_;
  float momentum_;
  float weight_decay_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  return std::make_unique<SgdUpdateKernel>(machine, op);
}

}  // namespace spillway::host
