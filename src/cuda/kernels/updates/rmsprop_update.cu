#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/updates/update_range.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/update_elements.h"

namespace spillway::cuda {
namespace {

struct RmspropBlocks {
  const float* old_w;
  const float* old_s;
  const float* old_v;  // null without a momentum
  const float* dw;
  float* w;  // may be old_w
  float* s;  // may be old_s
  float* v;  // may be old_v
};

// Rounds after each operation, as the host does: no fused multiply-adds. What is padding in
// parameters, averages and gradient stays zero, as 0 / epsilon is.
__device__ void update(const RmspropBlocks& blocks, const RmspropRates& rates,
                       const UpdateRange& range) {
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const float decay = i < range.decayed ? rates.decay : 0.F;
    Pack<float> w = load(blocks.old_w, i);
    Pack<float> s = load(blocks.old_s, i);
    Pack<float> v{};
    if (blocks.v != nullptr) v = load(blocks.old_v, i);
    const Pack<float> dw = load(blocks.dw, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      const float gradient = __fadd_rn(dw.lanes[l], __fmul_rn(decay, w.lanes[l]));
      s.lanes[l] = __fadd_rn(__fmul_rn(rates.old_square, s.lanes[l]),
                             __fmul_rn(__fmul_rn(rates.new_square, gradient), gradient));
      float change = __fdiv_rn(gradient, __fadd_rn(__fsqrt_rn(s.lanes[l]), rates.epsilon));
      if (blocks.v != nullptr) {
        change = __fadd_rn(__fmul_rn(rates.momentum, v.lanes[l]), change);
        v.lanes[l] = change;
      }
      w.lanes[l] = __fsub_rn(w.lanes[l], __fmul_rn(rates.rate, change));
    }
    store(blocks.w, i, w);
    store(blocks.s, i, s);
    if (blocks.v != nullptr) store(blocks.v, i, v);
    range.store_copy(i, w);
  }
}

__global__ void rmsprop_update(RmspropBlocks blocks, const RmspropRates* rates, UpdateRange range) {
  update(blocks, *rates, range);
}

__global__ void rmsprop_updates(const __grid_constant__ UpdateParts<RmspropBlocks> parts,
                                const RmspropRates* rates) {
  update(parts.blocks[blockIdx.y], *rates, parts.ranges[blockIdx.y]);
}

// They begin with what the range goes over.
RmspropBlocks blocks_of(const Operands<RmspropUpdate>& operands, const UpdateRange& range) {
  return {.old_w = tensor<float>(operands.in.parameters) + range.first,
          .old_s = tensor<float>(operands.in.square_average),
          .old_v = tensor<float>(operands.in.velocity),
          .dw = tensor<float>(operands.in.dparameters) + range.gradient,
          .w = tensor<float>(operands.out.parameters) + range.written,
          .s = tensor<float>(operands.out.square_average),
          .v = tensor<float>(operands.out.velocity)};
}

auto rates_of_step(const Machine& machine, const RmspropOptions& options) {
  return machine.numbers->add(
      [options](const StepContext& context) { return rmsprop_rates(options, context); });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RmspropUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rates = rates_of_step(machine, op.options)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, rmsprop_update, blocks_of(operands, range), rates.get(), range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<RmspropUpdate> ops) {
  auto rates = rates_of_step(machine, ops.front().options);
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rates = std::move(rates)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, blocks_of);
    };
    launch_updates<RmspropBlocks>(stream, ops.size(), part, rmsprop_updates, rates.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

}  // namespace spillway::cuda
