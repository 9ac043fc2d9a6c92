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

struct RmspropNumbers {
  float old_square;
  float new_square;
  float epsilon;
  float momentum;
  float decay;
};

// Rounds after each operation, as the host does: no fused multiply-adds. What is padding in
// parameters, averages and gradient stays zero, as 0 / epsilon is.
__device__ void update(const RmspropBlocks& blocks, const RmspropNumbers& numbers, float rate,
                       const UpdateRange& range) {
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const float decay = i < range.decayed ? numbers.decay : 0.F;
    Pack<float> w = load(blocks.old_w, i);
    Pack<float> s = load(blocks.old_s, i);
    Pack<float> v{};
    if (blocks.v != nullptr) v = load(blocks.old_v, i);
    const Pack<float> dw = load(blocks.dw, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      const float gradient = __fadd_rn(dw.lanes[l], __fmul_rn(decay, w.lanes[l]));
      s.lanes[l] = __fadd_rn(__fmul_rn(numbers.old_square, s.lanes[l]),
                             __fmul_rn(__fmul_rn(numbers.new_square, gradient), gradient));
      float change = __fdiv_rn(gradient, __fadd_rn(__fsqrt_rn(s.lanes[l]), numbers.epsilon));
      if (blocks.v != nullptr) {
        change = __fadd_rn(__fmul_rn(numbers.momentum, v.lanes[l]), change);
        v.lanes[l] = change;
      }
      w.lanes[l] = __fsub_rn(w.lanes[l], __fmul_rn(rate, change));
    }
    store(blocks.w, i, w);
    store(blocks.s, i, s);
    if (blocks.v != nullptr) store(blocks.v, i, v);
    range.store_copy(i, w);
  }
}

__global__ void rmsprop_update(RmspropBlocks blocks, RmspropNumbers numbers, const float* rate,
                               UpdateRange range) {
  update(blocks, numbers, *rate, range);
}

__global__ void rmsprop_updates(const __grid_constant__ UpdateParts<RmspropBlocks> parts,
                                RmspropNumbers numbers, const float* rate) {
  update(parts.blocks[blockIdx.y], numbers, *rate, parts.ranges[blockIdx.y]);
}

// `first` is that of the UpdateRange.
RmspropBlocks blocks_of(const Operands<RmspropUpdate>& operands, std::size_t first) {
  return {.old_w = tensor<float>(operands.in.parameters) + first,
          .old_s = tensor<float>(operands.in.square_average),
          .old_v = tensor<float>(operands.in.velocity),
          .dw = tensor<float>(operands.in.dparameters),
          .w = tensor<float>(operands.out.parameters) + first,
          .s = tensor<float>(operands.out.square_average),
          .v = tensor<float>(operands.out.velocity)};
}

RmspropNumbers numbers_of(const RmspropOptions& options) {
  const RmspropElement element = rmsprop_element(options, {}, 0);
  return {.old_square = element.old_square,
          .new_square = element.new_square,
          .epsilon = element.epsilon,
          .momentum = element.momentum,
          .decay = element.decay};
}

auto rate_of_step(const Machine& machine) {
  return machine.numbers->add([](const StepContext& context) { return context.learning_rate; });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RmspropUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rate = rate_of_step(machine)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, rmsprop_update, blocks_of(operands, range.first),
           numbers_of(op.options), rate.get(), range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<RmspropUpdate> ops) {
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rate = rate_of_step(machine)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, blocks_of);
    };
    launch_updates<RmspropBlocks>(stream, ops.size(), part, rmsprop_updates,
                                  numbers_of(ops.front().options), rate.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

}  // namespace spillway::cuda
