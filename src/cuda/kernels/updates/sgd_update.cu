#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/updates/update_range.cuh"
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
__device__ void update(const SgdBlocks& blocks, const SgdOptions& options, float rate,
                       const UpdateRange& range) {
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

__global__ void sgd_update(SgdBlocks blocks, SgdOptions options, const float* rate,
                           UpdateRange range) {
  update(blocks, options, *rate, range);
}

__global__ void sgd_updates(const __grid_constant__ UpdateParts<SgdBlocks> parts,
                            SgdOptions options, const float* rate) {
  update(parts.blocks[blockIdx.y], options, *rate, parts.ranges[blockIdx.y]);
}

// They begin with what the range goes over.
SgdBlocks blocks_of(const Operands<SgdUpdate>& operands, const UpdateRange& range) {
  return {.old_w = tensor<float>(operands.in.parameters) + range.first,
          .old_v = tensor<float>(operands.in.momentum),
          .dw = tensor<float>(operands.in.dparameters) + range.gradient,
          .w = tensor<float>(operands.out.parameters) + range.written,
          .v = tensor<float>(operands.out.momentum)};
}

auto rate_of_step(const Machine& machine) {
  return machine.numbers->add([](const StepContext& context) { return context.learning_rate; });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rate = rate_of_step(machine)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, sgd_update, blocks_of(operands, range), op.options, rate.get(),
           range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<SgdUpdate> ops) {
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rate = rate_of_step(machine)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, blocks_of);
    };
    launch_updates<SgdBlocks>(stream, ops.size(), part, sgd_updates, ops.front().options,
                              rate.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

}  // namespace spillway::cuda
