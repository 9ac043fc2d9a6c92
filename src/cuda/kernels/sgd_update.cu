#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/update_range.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/step_numbers.h"

namespace spillway::cuda {
namespace {

struct SgdBlocks {
  const float* old_w;
  const float* old_v;
  const float* dw;
  float* w;  // may be old_w
  float* v;  // may be old_v
};

// Rounds after each operation, as the host does: no fused multiply-adds. What is padding in
// parameters, momentum and gradient stays zero.
__global__ void sgd_update(SgdBlocks blocks, SgdOptions options, const float* step_rate,
                           UpdateRange range) {
  const float rate = *step_rate;
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const float decay = i < range.decayed ? options.weight_decay : 0.F;
    Pack<float> w = load(blocks.old_w, i);
    Pack<float> v = load(blocks.old_v, i);
    const Pack<float> dw = load(blocks.dw, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      const float gradient = __fadd_rn(dw.lanes[l], __fmul_rn(decay, w.lanes[l]));
      v.lanes[l] = __fadd_rn(__fmul_rn(options.momentum, v.lanes[l]), gradient);
      const float change = options.nesterov
                               ? __fadd_rn(gradient, __fmul_rn(options.momentum, v.lanes[l]))
                               : v.lanes[l];
      w.lanes[l] = __fsub_rn(w.lanes[l], __fmul_rn(rate, change));
    }
    store(blocks.w, i, w);
    store(blocks.v, i, v);
    range.store_copy(i, w);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto rate =
      machine.numbers->add([](const StepContext& context) { return context.learning_rate; });
  auto update = [stream = machine.stream, layout, op,
                 rate = std::move(rate)](const auto& operands) {
    const SgdBlocks blocks{.old_w = tensor<float>(operands.in.parameters),
                           .old_v = tensor<float>(operands.in.momentum),
                           .dw = tensor<float>(operands.in.dparameters),
                           .w = tensor<float>(operands.out.parameters),
                           .v = tensor<float>(operands.out.momentum)};
    const UpdateRange range = UpdateRange::of(layout, op.parameters, operands.out.parameters);
    launch(stream, range.packs, sgd_update, blocks, op.options, rate.get(), range);
  };
  return kernel_of(op, std::move(update));
}

}  // namespace spillway::cuda
