#include <cmath>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/warp_sum.cuh"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Squares are summed by so many warps, on every device.
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

// By one warp.
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

// Gradients of parameters are floats in every precision, a multiple of 8 of them.
template <class Op>
std::size_t packs_of(const Machine& machine, const Op& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return layout.cuts().range(op.part).count() / Pack<float>::kLanes;
}

}  // namespace

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

}  // namespace spillway::cuda
