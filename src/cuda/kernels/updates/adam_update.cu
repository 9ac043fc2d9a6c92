#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/updates/update_range.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/update_elements.h"

namespace spillway::cuda {
namespace {

struct AdamBlocks {
  const float* old_w;
  const float* old_m;
  const float* old_v;
  const float* dw;
  float* w;  // may be old_w
  float* m;  // may be old_m
  float* v;  // may be old_v
};

struct AdamNumbers {
  float w;
  float m;
  float v;
};

// Rounds after each operation, as the host does: no fused multiply-adds.
__device__ AdamNumbers updated(const AdamNumbers& old, float dw, float decay, float shrink,
                               const AdamRates& rates) {
  const float gradient = __fadd_rn(dw, __fmul_rn(decay, old.w));
  const float m = __fadd_rn(old.m, __fmul_rn(rates.new_first, __fsub_rn(gradient, old.m)));
  const float v = __fadd_rn(__fmul_rn(rates.old_second, old.v),
                            __fmul_rn(__fmul_rn(rates.new_second, gradient), gradient));
  const float size = __fadd_rn(__fdiv_rn(__fsqrt_rn(v), rates.root), rates.epsilon);
  const float change = __fmul_rn(rates.step_size, __fdiv_rn(m, size));
  return {__fsub_rn(__fmul_rn(shrink, old.w), change), m, v};
}

// What is padding in parameters, moments and gradient stays zero, as 0 / epsilon is.
__device__ void update(const AdamBlocks& blocks, const AdamRates& rates, const UpdateRange& range) {
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const float decay = i < range.decayed ? rates.decay : 0.F;
    const float shrink = i < range.decayed ? rates.shrink : 1.F;
    Pack<float> w = load(blocks.old_w, i);
    Pack<float> m = load(blocks.old_m, i);
    Pack<float> v = load(blocks.old_v, i);
    const Pack<float> dw = load(blocks.dw, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      const AdamNumbers numbers =
          updated({w.lanes[l], m.lanes[l], v.lanes[l]}, dw.lanes[l], decay, shrink, rates);
      w.lanes[l] = numbers.w;
      m.lanes[l] = numbers.m;
      v.lanes[l] = numbers.v;
    }
    store(blocks.w, i, w);
    store(blocks.m, i, m);
    store(blocks.v, i, v);
    range.store_copy(i, w);
  }
}

__global__ void adam_update(AdamBlocks blocks, const AdamRates* rates, UpdateRange range) {
  update(blocks, *rates, range);
}

__global__ void adam_updates(const __grid_constant__ UpdateParts<AdamBlocks> parts,
                             const AdamRates* rates) {
  update(parts.blocks[blockIdx.y], *rates, parts.ranges[blockIdx.y]);
}

// They begin with what the range goes over.
AdamBlocks blocks_of(const Operands<AdamUpdate>& operands, const UpdateRange& range) {
  return {.old_w = tensor<float>(operands.in.parameters) + range.first,
          .old_m = tensor<float>(operands.in.first_moment),
          .old_v = tensor<float>(operands.in.second_moment),
          .dw = tensor<float>(operands.in.dparameters) + range.gradient,
          .w = tensor<float>(operands.out.parameters) + range.written,
          .m = tensor<float>(operands.out.first_moment),
          .v = tensor<float>(operands.out.second_moment)};
}

auto rates_of_step(const Machine& machine, const AdamOptions& options) {
  return machine.numbers->add(
      [options](const StepContext& context) { return adam_rates(options, context); });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AdamUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rates = rates_of_step(machine, op.options)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, adam_update, blocks_of(operands, range), rates.get(), range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<AdamUpdate> ops) {
  auto rates = rates_of_step(machine, ops.front().options);
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rates = std::move(rates)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, blocks_of);
    };
    launch_updates<AdamBlocks>(stream, ops.size(), part, adam_updates, rates.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

}  // namespace spillway::cuda
