#include "src/host/kernels/kernels.h"
#include "src/host/kernels/update_range.h"

namespace spillway::host {
namespace {

// Over the whole block: what is padding in both stays zero.
class AccumulateGradientsKernel final : public HostKernel {
 public:
  AccumulateGradientsKernel(const Machine& machine, const AccumulateGradients& op)
      : HostKernel{machine, operand_count(op)},
        count_{parts_of(machine.layout, op.parameters).total} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<AccumulateGradients>(arguments.operands);
    const float* const old_sum = floats(operands.in.sum);
    const float* const part = floats(operands.in.dparameters);
    float* const sum = floats(operands.out.sum);
#pragma omp parallel for simd schedule(static) if (parallel : count_ >= kWorthATeam)
    for (std::size_t i = 0; i < count_; ++i) sum[i] = old_sum[i] + part[i];
  }

  std::size_t count_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AccumulateGradients& op) {
  return std::make_unique<AccumulateGradientsKernel>(machine, op);
}

}  // namespace spillway::host
