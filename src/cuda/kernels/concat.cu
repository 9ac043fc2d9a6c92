#include <algorithm>
#include <vector>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

// A range of channels that is copied from one tensor to another, for every pixel.
struct ChannelMove {
  std::size_t pixels;
  std::size_t from_channels;  // per pixel, padding included
  std::size_t from_first;
  std::size_t to_channels;
  std::size_t to_first;
  std::uint32_t copied;
  std::uint32_t written;  // if more than copied, zeros follow as padding
  bool accumulates;       // adds to the old values
};

// Works for any first channel.
template <class T>
__global__ void move_elements(const T* from, T* to, ChannelMove move) {
  const std::size_t count = move.pixels * move.written;
  for (std::size_t i = first_item(); i < count; i += item_stride()) {
    const std::size_t pixel = i / move.written;
    const std::size_t c = i % move.written;
    const std::size_t target = pixel * move.to_channels + move.to_first + c;
    float value = 0.F;
    if (c < move.copied) {
      value = load_one(from, pixel * move.from_channels + move.from_first + c);
      if (move.accumulates) value += load_one(to, target);
    }
    store_one(to, target, value);
  }
}

// Requires: all channel numbers except `copied` are multiples of 8.
template <class T>
__global__ void move_packs(const T* from, T* to, ChannelMove move) {
  constexpr std::uint32_t kLanes = Pack<T>::kLanes;
  const std::uint32_t of_pixel = move.written / kLanes;
  const std::size_t count = move.pixels * of_pixel;
  for (std::size_t i = first_item(); i < count; i += item_stride()) {
    const std::size_t pixel = i / of_pixel;
    const std::size_t c = i % of_pixel * kLanes;
    const std::size_t target = (pixel * move.to_channels + move.to_first + c) / kLanes;
    Pack<T> pack = load(from, (pixel * move.from_channels + move.from_first + c) / kLanes);
    if (move.accumulates) {
      const Pack<T> sum = load(to, target);
#pragma unroll
      for (int l = 0; l < Pack<T>::kLanes; ++l) pack.lanes[l] += sum.lanes[l];
    }
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      if (c + l >= move.copied) pack.lanes[l] = 0.F;
    }
    store(to, target, pack);
  }
}

template <class T>
void enqueue_move(cudaStream_t stream, const T* from, T* to, const ChannelMove& move) {
  const bool is_aligned = move.from_first % Layout::kChannelBlock == 0 &&
                          move.to_first % Layout::kChannelBlock == 0 &&
                          move.written % Layout::kChannelBlock == 0;
  const std::size_t elements = move.pixels * move.written;
  if (is_aligned) {
    launch(stream, elements / Pack<T>::kLanes, move_packs<T>, from, to, move);
  } else {
    launch(stream, elements, move_elements<T>, from, to, move);
  }
}

std::size_t pixels_of(const TensorShape& shape) {
  return shape.batch * shape.image.height * shape.image.width;
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConcatForward& op) {
  const TensorShape whole = op.whole();
  std::vector<ChannelMove> moves;  // by part
  std::size_t first = 0;
  for (const TensorShape& part : op.parts) {
    const std::size_t channels = part.image.channels;
    const bool is_last = moves.size() + 1 == op.parts.size();
    const std::size_t written = is_last ? Layout::padded(whole.image.channels) - first : channels;
    moves.push_back({.pixels = pixels_of(whole),
                     .from_channels = Layout::padded(channels),
                     .from_first = 0,
                     .to_channels = Layout::padded(whole.image.channels),
                     .to_first = first,
                     .copied = static_cast<std::uint32_t>(channels),
                     .written = static_cast<std::uint32_t>(written),
                     .accumulates = false});
    first += channels;
  }
  return kernel_of(op, [machine, moves](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      T* const y = tensor<T>(operands.out.y);
      for (std::size_t i = 0; i < moves.size(); ++i) {
        enqueue_move<T>(machine.stream, tensor<T>(operands.in.parts[i]), y, moves[i]);
      }
    });
  });
}

// The sums that are read and the blocks that are written are the same.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConcatBackward& op) {
  std::vector<ChannelMove> moves;  // by slice
  for (const ConcatBackward::Slice& slice : op.slices) {
    const std::size_t channels = slice.x.image.channels;
    moves.push_back({.pixels = pixels_of(op.y),
                     .from_channels = Layout::padded(op.y.image.channels),
                     .from_first = slice.first_channel,
                     .to_channels = Layout::padded(channels),
                     .to_first = 0,
                     .copied = static_cast<std::uint32_t>(channels),
                     .written = static_cast<std::uint32_t>(Layout::padded(channels)),
                     .accumulates = slice.accumulates});
  }
  return kernel_of(op, [machine, moves](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      const T* const dy = tensor<T>(operands.in.dy);
      for (std::size_t i = 0; i < moves.size(); ++i) {
        enqueue_move<T>(machine.stream, dy, tensor<T>(operands.out.parts[i]), moves[i]);
      }
    });
  });
}

}  // namespace spillway::cuda
