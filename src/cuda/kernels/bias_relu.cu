#include "src/cuda/kernels/bias_relu.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/row_walk.cuh"

namespace spillway::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    bias_relu_rows(ChannelMatrix matrix, ChannelTiling tiling, T* y, const float* __restrict__ bias,
                   bool relu) {
  __shared__ TileChannels<1> channels;
  fill_channels(channels, matrix, [&](std::size_t channel) {
    return ChannelNumbers<1>{{bias != nullptr ? bias[channel] : 0.F}};
  });
  for_each_row<kRowsAhead<T>>(
      row_walk(matrix, tiling), [&](std::size_t at) { return load_raw(y, at); },
      [&](auto& rows) {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          const Quad added = channels.quad(0, q);
#pragma unroll
          for (RawGroup<T>& row : rows) {
            Quad values = get_quad(row, q);
#pragma unroll
            for (int l = 0; l < 4; ++l) {
              const float sum = values.lanes[l] + added.lanes[l];
              values.lanes[l] = relu && sum < 0.F ? 0.F : sum;  // a NaN stays one
            }
            set_quad(row, q, values);
          }
        }
      },
      [&](std::size_t at, const RawGroup<T>& row) { store_raw(y, at, row); });
}

__global__ void widen_groups(const __nv_bfloat16* __restrict__ from, float* __restrict__ to,
                             std::size_t groups) {
  for (std::size_t i = first_item(); i < groups; i += item_stride()) {
    store_group(to, i, load_group(from, i));
  }
}

}  // namespace

void add_bias_relu(const Machine& machine, const ChannelMatrix& matrix, std::byte* y,
                   const float* bias, bool relu) {
  if (bias == nullptr && !relu) return;
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, bias_relu_rows<T>, reinterpret_cast<T*>(y), bias, relu);
  });
}

void widen(const Machine& machine, std::size_t count, const std::byte* from, float* to) {
  const std::size_t groups = count / Layout::kChannelBlock;
  launch(machine.stream, groups, widen_groups, reinterpret_cast<const __nv_bfloat16*>(from), to,
         groups);
}

}  // namespace spillway::cuda
