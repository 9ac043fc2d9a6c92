#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/parameter.h"
#include "src/ops/update_elements.h"

namespace spillway::cuda {
namespace {

// The packs of floats that an update covers: a part of a block, padding included. Weights, biases
// and parts consist of whole packs.
struct UpdateRange {
  std::size_t first;  // first float in the whole parameter block
  std::size_t packs;
  std::size_t decayed;    // packs at the front that weight decay applies to
  std::size_t gradient;   // first float in the gradient
  std::size_t written;    // first float in the block of new parameters
  __nv_bfloat16* w_copy;  // bfloat16 copy of the part's parameters, also updated; may be null

  // `block` holds the parameters that are written.
  static UpdateRange of(const ParameterLayout& layout, const ParameterSpec& spec,
                        const ParameterPart& part, std::byte* block, bool decays_all) {
    constexpr std::size_t kLanes = Pack<float>::kLanes;
    const auto [floats, gradient, written] = UpdatedFloats::of(part, layout.cuts().range(part));
    const std::size_t of_weights = has_weights(spec) ? layout.weight_count() : 0;
    const std::size_t weights = decays_all ? floats.end : of_weights;
    UpdateRange range{
        .first = floats.begin,
        .packs = floats.count() / kLanes,
        .decayed = (std::clamp(weights, floats.begin, floats.end) - floats.begin) / kLanes,
        .gradient = gradient,
        .written = written,
        .w_copy = nullptr};
    if (layout.has_bf16_copy() && !part.slice) {
      range.w_copy =
          reinterpret_cast<__nv_bfloat16*>(block + layout.bf16_weights().count()) + floats.begin;
    }
    return range;
  }
  template <class Op>
  static UpdateRange of(const ParameterLayout& layout, const Op& op, const Operands<Op>& operands) {
    return of(layout, op.parameters, op.part, operands.out.parameters, op.options.decays_all);
  }

  // Writes pack `i` of the updated parameters to the copy.
  __device__ void store_copy(std::size_t i, const Pack<float>& w) const {
    if (w_copy == nullptr) return;
    auto* const pairs = reinterpret_cast<__nv_bfloat162*>(w_copy) + 2 * i;
    pairs[0] = __floats2bfloat162_rn(w.lanes[0], w.lanes[1]);
    pairs[1] = __floats2bfloat162_rn(w.lanes[2], w.lanes[3]);
  }
};

// Updates per launch, limited by its 4 KiB of arguments.
constexpr unsigned kPartsOfLaunch = 32;

// Most blocks of threads per update in a launch of several updates: one update alone, of a table or
// a large layer, fills a device.
constexpr std::size_t kMaxPartBlocks = 256;

// The updates of one launch; block (x, y) of threads works on update y.
template <class Blocks>
struct UpdateParts {
  Blocks blocks[kPartsOfLaunch];
  UpdateRange ranges[kPartsOfLaunch];
};

// Returns the blocks, from `blocks_of`, and the range of update `i`. `operands` are those of all
// updates. The blocks' pointers point to the first float of the range.
template <class Op, class BlocksOf>
auto part_of(Precision precision, const std::vector<Op>& ops, std::span<std::byte* const> operands,
             std::size_t i, const BlocksOf& blocks_of) {
  const Op& op = ops[i];
  const std::size_t count = operand_count(op);
  const Operands<Op> own = operands_of(op, operands.subspan(i * count, count));
  const UpdateRange range = UpdateRange::of(ParameterLayout{precision, op.parameters}, op, own);
  return std::tuple{blocks_of(own, range), range};
}

// Enqueues `kernel(parts, arguments...)` as often as `count` updates need. `part_of(i)` returns
// blocks and range of update i.
template <class Blocks, class Part, class... Parameters, class... Arguments>
void launch_updates(cudaStream_t stream, std::size_t count, const Part& part_of,
                    void (*kernel)(UpdateParts<Blocks>, Parameters...),
                    const Arguments&... arguments) {
  for (std::size_t first = 0; first < count; first += kPartsOfLaunch) {
    const std::size_t parts_here = std::min<std::size_t>(kPartsOfLaunch, count - first);
    UpdateParts<Blocks> parts{};
    std::size_t most = 1;
    for (std::size_t i = 0; i < parts_here; ++i) {
      std::tie(parts.blocks[i], parts.ranges[i]) = part_of(first + i);
      most = std::max(most, (parts.ranges[i].packs + kThreads - 1) / kThreads);
    }
    const Grid grid{.blocks = dim3{static_cast<unsigned>(std::min(most, kMaxPartBlocks)),
                                   static_cast<unsigned>(parts_here)},
                    .threads = dim3{kThreads}};
    enqueue(stream, grid, kernel, parts, arguments...);
  }
}

// Runs over the whole part: padding is zero in both and stays zero. `sum` may be `old_sum`.
__global__ void accumulate_gradients(const float* old_sum, const float* part, float* sum,
                                     std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<float> total = load(old_sum, i);
    const Pack<float> more = load(part, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) total.lanes[l] += more.lanes[l];
    store(sum, i, total);
  }
}

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

// Rounds after each operation, like the host: no fused multiply-adds.
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

// Padding in parameters, moments and gradient stays zero, since 0 / epsilon is zero.
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

// The pointers point to the first float of the range.
AdamBlocks adam_blocks_of(const Operands<AdamUpdate>& operands, const UpdateRange& range) {
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

// Rounds after each operation, like the host. Runs over the whole part: padding is zero in both and
// stays zero. `average` may be `old_average`.
__global__ void average_parameters(const float* w, const float* old_average, float* average,
                                   float part, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const Pack<float> now = load(w, i);
    Pack<float> mean = load(old_average, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      const float more = __fmul_rn(part, __fsub_rn(now.lanes[l], mean.lanes[l]));
      mean.lanes[l] = __fadd_rn(mean.lanes[l], more);
    }
    store(average, i, mean);
  }
}

// Number of warps that sum squares, on every device.
constexpr std::size_t kSums = 1024;

__global__ void sum_squares(const float* gradient, std::size_t packs, double* sums) {
  const std::size_t lane = threadIdx.x % kWarp;
  for (std::size_t warp = first_item() / kWarp; warp < kSums; warp += item_stride() / kWarp) {
    double sum = 0;
    for (std::size_t i = warp * kWarp + lane; i < packs; i += kSums * kWarp) {
      const Pack<float> pack = load(gradient, i);
#pragma unroll
      for (const float number : pack.lanes) {
        sum += static_cast<double>(number) * static_cast<double>(number);
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) sums[warp] = sum;
  }
}

// Runs on one warp.
__global__ void add_sums(const double* sums, bool accumulates, double* squares) {
  double sum = 0;
  if (threadIdx.x < kWarp) {
    for (std::size_t i = threadIdx.x; i < kSums; i += kWarp) sum += sums[i];
    sum = warp_sum(sum);
  }
  if (threadIdx.x == 0) *squares = (accumulates ? *squares : 0) + sum;
}

__global__ void clip(const double* squares, float largest_norm, const float* from, float* to,
                     std::size_t packs) {
  const double norm = sqrt(*squares);
  const double ratio = static_cast<double>(largest_norm) / (norm + 1e-6);
  const auto scale = static_cast<float>(ratio > 1.0 ? 1.0 : ratio);  // a NaN stays and shows
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<float> pack = load(from, i);
#pragma unroll
    for (float& lane : pack.lanes) lane *= scale;
    store(to, i, pack);
  }
}

// Parameter gradients are a multiple of 8 floats in every precision.
template <class Op>
std::size_t packs_of(const Machine& machine, const Op& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return layout.cuts().range(op.part).count() / Pack<float>::kLanes;
}

struct RmspropBlocks {
  const float* old_w;
  const float* old_s;
  const float* old_v;  // null without a momentum
  const float* dw;
  float* w;  // may be old_w
  float* s;  // may be old_s
  float* v;  // may be old_v
};

// Rounds after each operation, like the host: no fused multiply-adds. Padding in parameters,
// averages and gradient stays zero, since 0 / epsilon is zero.
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

// The pointers point to the first float of the range.
RmspropBlocks rmsprop_blocks_of(const Operands<RmspropUpdate>& operands, const UpdateRange& range) {
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

struct SgdBlocks {
  const float* old_w;
  const float* old_v;
  const float* dw;
  float* w;  // may be old_w
  float* v;  // may be old_v
};

// Rounds after each operation, like the host: no fused multiply-adds. Padding in parameters,
// momentum and gradient stays zero.
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

// The pointers point to the first float of the range.
SgdBlocks sgd_blocks_of(const Operands<SgdUpdate>& operands, const UpdateRange& range) {
  return {.old_w = tensor<float>(operands.in.parameters) + range.first,
          .old_v = tensor<float>(operands.in.momentum),
          .dw = tensor<float>(operands.in.dparameters) + range.gradient,
          .w = tensor<float>(operands.out.parameters) + range.written,
          .v = tensor<float>(operands.out.momentum)};
}

auto rate_of_step(const Machine& machine) {
  return machine.numbers->add([](const StepContext& context) { return context.learning_rate; });
}

__global__ void take_parameters(const float* taken, float* parameters, UpdateRange range) {
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const Pack<float> w = load(taken, i);
    store(parameters, i, w);
    range.store_copy(i, w);
  }
}

}  // namespace

// Parameter gradients are a multiple of 8 floats in every precision.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AccumulateGradients& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  const std::size_t packs = layout.cuts().range(op.part).count() / Pack<float>::kLanes;
  return kernel_of(op, [stream = machine.stream, packs](const auto& operands) {
    launch(stream, packs, accumulate_gradients, tensor<float>(operands.in.sum),
           tensor<float>(operands.in.dparameters), tensor<float>(operands.out.sum), packs);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AdamUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rates = rates_of_step(machine, op.options)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, adam_update, adam_blocks_of(operands, range), rates.get(), range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<AdamUpdate> ops) {
  auto rates = rates_of_step(machine, ops.front().options);
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rates = std::move(rates)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, adam_blocks_of);
    };
    launch_updates<AdamBlocks>(stream, ops.size(), part, adam_updates, rates.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AverageParameters& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  const FloatRange range = layout.cuts().range(op.part);
  const std::size_t packs = range.count() / Pack<float>::kLanes;
  const auto part = static_cast<float>(1 - op.decay);
  return kernel_of(op, [stream = machine.stream, first = range.begin, packs,
                        part](const auto& operands) {
    launch(stream, packs, average_parameters, tensor<const float>(operands.in.parameters) + first,
           tensor<const float>(operands.in.average), tensor<float>(operands.out.average), part,
           packs);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddSquares& op) {
  return kernel_of(op, [stream = machine.stream, packs = packs_of(machine, op), op](
                           const auto& operands, const auto& arguments) {
    double* const sums = tensor<double>(arguments.workspace);
    launch(stream, kSums * kWarp, sum_squares, tensor<const float>(operands.in.dparameters), packs,
           sums);
    launch(stream, 1, add_sums, sums, op.accumulates, tensor<double>(operands.out.squares));
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ClipGradient& op) {
  return kernel_of(
      op, [stream = machine.stream, packs = packs_of(machine, op), op](const auto& operands) {
        launch(stream, packs, clip, tensor<const double>(operands.in.squares), op.largest_norm,
               tensor<const float>(operands.in.dparameters),
               tensor<float>(operands.out.dparameters), packs);
      });
}

um::Bytes workspace_of(const Machine& /*machine*/, const AddSquares& /*op*/) {
  return um::Bytes{kSums * sizeof(double)};
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RmspropUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rates = rates_of_step(machine, op.options)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, rmsprop_update, rmsprop_blocks_of(operands, range), rates.get(),
           range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<RmspropUpdate> ops) {
  auto rates = rates_of_step(machine, ops.front().options);
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rates = std::move(rates)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, rmsprop_blocks_of);
    };
    launch_updates<RmspropBlocks>(stream, ops.size(), part, rmsprop_updates, rates.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  auto update = [stream = machine.stream, layout, op,
                 rate = rate_of_step(machine)](const auto& operands) {
    const UpdateRange range = UpdateRange::of(layout, op, operands);
    launch(stream, range.packs, sgd_update, sgd_blocks_of(operands, range), op.options, rate.get(),
           range);
  };
  return kernel_of(op, std::move(update));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, std::vector<SgdUpdate> ops) {
  auto update = [stream = machine.stream, precision = machine.precision, ops = std::move(ops),
                 rate = rate_of_step(machine)](std::span<std::byte* const> operands) {
    const auto part = [&](std::size_t i) {
      return part_of(precision, ops, operands, i, sgd_blocks_of);
    };
    launch_updates<SgdBlocks>(stream, ops.size(), part, sgd_updates, ops.front().options,
                              rate.get());
  };
  return std::make_unique<OperandsKernel<decltype(update)>>(std::move(update));
}

// Copies the whole part: both have the same padding.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const TakeParameters& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return kernel_of(op, [stream = machine.stream, layout, op](const auto& operands) {
    const UpdateRange range =
        UpdateRange::of(layout, op.parameters, op.part, operands.out.parameters, false);
    launch(stream, range.packs, take_parameters, tensor<const float>(operands.in.taken),
           tensor<float>(operands.out.parameters) + range.first, range);
  });
}

}  // namespace spillway::cuda
