#include "src/cuda/kernels/bias_relu.h"
#include "src/cuda/kernels/channel_tile.cuh"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kTileThreads)
    bias_relu_rows(ChannelMatrix matrix, ChannelTiling tiling, T* y, const float* __restrict__ bias,
                   bool relu) {
  const TilePlace place = tile_place(matrix, tiling);
  if (!place.is_inside) return;
  const Group added = bias != nullptr ? load_group(bias, place.group) : Group{};
  const auto at = [&](std::size_t row) { return row * matrix.groups() + place.group; };
  for_each_row<4>(
      place, [&](std::size_t row) { return load_group(y, at(row)); },
      [&](std::size_t row, Group& values) {
#pragma unroll
        for (int l = 0; l < kGroupLanes; ++l) {
          const float sum = values.lanes[l] + added.lanes[l];
          values.lanes[l] = relu && sum < 0.F ? 0.F : sum;  // a NaN stays one
        }
        store_group(y, at(row), values);
      });
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
