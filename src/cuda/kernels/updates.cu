#include <cuda_bf16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/optimizers.h"
#include "src/ops/parameter.h"

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
  static UpdateRange of(Precision precision, const UpdateParameters& op,
                        const Operands<UpdateParameters>& operands) {
    return of(ParameterLayout{precision, op.parameters}, op.parameters, op.part,
              operands.out.list[0], spillway::decays_all(op.options));
  }

  // Writes pack `i` of the updated parameters to the copy.
  __device__ void store_copy(std::size_t i, const Pack<float>& w) const {
    if (w_copy == nullptr) return;
    auto* const pairs = reinterpret_cast<__nv_bfloat162*>(w_copy) + 2 * i;
    pairs[0] = __floats2bfloat162_rn(w.lanes[0], w.lanes[1]);
    pairs[1] = __floats2bfloat162_rn(w.lanes[2], w.lanes[3]);
  }
};

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

// A float that rounds after each operation, like the host: no fused multiply-adds.
struct Rounded {
  float value;

  friend __device__ Rounded operator+(Rounded a, Rounded b) {
    return {__fadd_rn(a.value, b.value)};
  }
  friend __device__ Rounded operator-(Rounded a, Rounded b) {
    return {__fsub_rn(a.value, b.value)};
  }
  friend __device__ Rounded operator*(Rounded a, Rounded b) {
    return {__fmul_rn(a.value, b.value)};
  }
  friend __device__ Rounded operator/(Rounded a, Rounded b) {
    return {__fdiv_rn(a.value, b.value)};
  }
  friend __device__ bool operator<(Rounded a, Rounded b) { return a.value < b.value; }
  friend __device__ Rounded sqrt(Rounded a) { return {__fsqrt_rn(a.value)}; }
};

// The blocks of an update with `kStates` tensors of optimizer state. The pointers point to the
// first float of the range.
template <std::size_t kStates>
struct UpdateBlocks {
  const float* old_w;
  const float* dw;
  float* w;               // may be old_w or dw
  float* state[kStates];  // updated in place

  static UpdateBlocks of(const UpdateParameters& op, const Operands<UpdateParameters>& operands,
                         const UpdateRange& range) {
    UpdateBlocks blocks{.old_w = tensor<float>(operands.in.list[0]) + range.first,
                        .dw = tensor<float>(operands.in.list[op.gradient_place()]) + range.gradient,
                        .w = tensor<float>(operands.out.list[0]) + range.written,
                        .state = {}};
    std::ranges::transform(operands.out.list.subspan(1), blocks.state, tensor<float>);
    return blocks;
  }
};

// Padding in parameters, state and gradient stays zero, since 0 / epsilon is zero.
template <class Rates, std::size_t kStates>
__device__ void update(const UpdateBlocks<kStates>& blocks, const Rates rates,
                       const UpdateRange& range) {
  for (std::size_t i = first_item(); i < range.packs; i += item_stride()) {
    const bool decays = i < range.decayed;
    Pack<float> w = load(blocks.old_w, i);
    Pack<float> state[kStates];
#pragma unroll
    for (std::size_t s = 0; s < kStates; ++s) state[s] = load(blocks.state[s], i);
    const Pack<float> dw = load(blocks.dw, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      std::array<Rounded, kStates> numbers;
#pragma unroll
      for (std::size_t s = 0; s < kStates; ++s) numbers[s] = {state[s].lanes[l]};
      w.lanes[l] = rates(Rounded{w.lanes[l]}, Rounded{dw.lanes[l]}, decays, numbers).value;
#pragma unroll
      for (std::size_t s = 0; s < kStates; ++s) state[s].lanes[l] = numbers[s].value;
    }
    store(blocks.w, i, w);
#pragma unroll
    for (std::size_t s = 0; s < kStates; ++s) store(blocks.state[s], i, state[s]);
    range.store_copy(i, w);
  }
}

template <class Rates, std::size_t kStates>
__global__ void update_parameters(UpdateBlocks<kStates> blocks, const Rates* rates,
                                  UpdateRange range) {
  update(blocks, *rates, range);
}

// Updates per launch, limited by its 4 KiB of arguments.
constexpr unsigned kPartsOfLaunch = 32;

// Most blocks of threads per update in a launch of several updates: one update alone, of a table or
// a large layer, fills a device.
constexpr std::size_t kMaxPartBlocks = 256;

// The updates of one launch; block (x, y) of threads works on update y.
template <std::size_t kStates>
struct UpdateParts {
  UpdateBlocks<kStates> blocks[kPartsOfLaunch];
  UpdateRange ranges[kPartsOfLaunch];
};

template <class Rates, std::size_t kStates>
__global__ void update_parts(const __grid_constant__ UpdateParts<kStates> parts,
                             const Rates* rates) {
  update(parts.blocks[blockIdx.y], *rates, parts.ranges[blockIdx.y]);
}

// Enqueues as many launches as the updates need. `operands` are those of all updates.
template <std::size_t kStates, class Rates>
void launch_updates(const Machine& machine, std::span<const UpdateParameters> ops,
                    std::span<std::byte* const> operands, const Rates* rates) {
  const std::size_t operands_each = operand_count(ops.front());
  for (std::size_t first = 0; first < ops.size(); first += kPartsOfLaunch) {
    const std::size_t parts_here = std::min<std::size_t>(kPartsOfLaunch, ops.size() - first);
    UpdateParts<kStates> parts{};
    std::size_t most = 1;
    for (std::size_t i = 0; i < parts_here; ++i) {
      const UpdateParameters& op = ops[first + i];
      const auto own =
          operands_of(op, operands.subspan((first + i) * operands_each, operands_each));
      parts.ranges[i] = UpdateRange::of(machine.precision, op, own);
      parts.blocks[i] = UpdateBlocks<kStates>::of(op, own, parts.ranges[i]);
      most = std::max(most, (parts.ranges[i].packs + kThreads - 1) / kThreads);
    }
    const Grid grid{.blocks = dim3{static_cast<unsigned>(std::min(most, kMaxPartBlocks)),
                                   static_cast<unsigned>(parts_here)},
                    .threads = dim3{kThreads}};
    enqueue(machine.stream, grid, update_parts<Rates, kStates>, parts, rates);
  }
}

template <class Rule>
auto rates_of_step(const Machine& machine, const Rule& rule) {
  return machine.numbers->add([rule](const StepContext& context) { return rule.rates(context); });
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

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const UpdateParameters& op) {
  return with_rule(op.options, [&](const auto& rule, auto states) {
    constexpr std::size_t kStates = decltype(states)::value;
    auto update = [machine, op, rates = rates_of_step(machine, rule)](const auto& operands) {
      const UpdateRange range = UpdateRange::of(machine.precision, op, operands);
      using Rates = decltype(rule.rates({}));
      launch(machine.stream, range.packs, update_parameters<Rates, kStates>,
             UpdateBlocks<kStates>::of(op, operands, range), rates.get(), range);
    };
    return kernel_of(op, std::move(update));
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const std::vector<UpdateParameters>& ops) {
  return with_rule(ops.front().options, [&](const auto& rule, auto states) {
    auto update = [machine, ops,
                   rates = rates_of_step(machine, rule)](std::span<std::byte* const> operands) {
      launch_updates<decltype(states)::value>(machine, ops, operands, rates.get());
    };
    return std::unique_ptr<Kernel>{
        std::make_unique<OperandsKernel<decltype(update)>>(std::move(update))};
  });
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
