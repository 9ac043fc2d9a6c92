#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/ops/parameter.h"

namespace spillway::cuda {

/// What an update goes over: the floats of a part of a block in packs, padding included. Weights
/// and biases are whole packs, and so is each part.
struct UpdateRange {
  std::size_t first;  ///< float of the parameters, which are one block
  std::size_t packs;
  std::size_t decayed;    ///< of them, those from the first on to which weight decay applies
  std::size_t gradient;   ///< float with which it begins in the gradient
  std::size_t written;    ///< and in the block that gets the new parameters
  __nv_bfloat16* w_copy;  ///< of the part's parameters, to be written too; null without one

  /// `block` holds the parameters that are written.
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

  /// Pack number `i` of the updated parameters.
  __device__ void store_copy(std::size_t i, const Pack<float>& w) const {
    if (w_copy == nullptr) return;
    auto* const pairs = reinterpret_cast<__nv_bfloat162*>(w_copy) + 2 * i;
    pairs[0] = __floats2bfloat162_rn(w.lanes[0], w.lanes[1]);
    pairs[1] = __floats2bfloat162_rn(w.lanes[2], w.lanes[3]);
  }
};

/// Updates that one launch makes: less than the 4 KiB of arguments that it may have.
constexpr unsigned kPartsOfLaunch = 32;

/// Blocks of threads that share an update with others in its launch.
constexpr std::size_t kMaxPartBlocks = 64;

/// What one launch updates; block (x, y) of threads works on number y.
template <class Blocks>
struct UpdateParts {
  Blocks blocks[kPartsOfLaunch];
  UpdateRange ranges[kPartsOfLaunch];
};

/// The blocks, by `blocks_of`, and the range of update number `i`; `operands` are those of all. The
/// blocks begin with what the range goes over.
template <class Op, class BlocksOf>
auto part_of(Precision precision, const std::vector<Op>& ops, std::span<std::byte* const> operands,
             std::size_t i, const BlocksOf& blocks_of) {
  const Op& op = ops[i];
  const std::size_t count = operand_count(op);
  const Operands<Op> own = operands_of(op, operands.subspan(i * count, count));
  const UpdateRange range = UpdateRange::of(ParameterLayout{precision, op.parameters}, op, own);
  return std::tuple{blocks_of(own, range), range};
}

/// Enqueues `kernel(parts, arguments...)` as often as `count` updates need; `part_of(i)` has the
/// blocks of number i and its range.
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

}  // namespace spillway::cuda
