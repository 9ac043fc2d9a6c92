#include <cstdint>
#include <string>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

// A thread computes one pack of a pixel: of y in forward, of x in backward. Backward visits the
// windows that contain the pixel, always in the same order. The index stores each maximum's
// position in its window, one byte per element of y.
constexpr std::size_t kMaxTaps = 256;

// One dimension of an image.
struct Axis {
  int x;  // pixels
  int y;
  int kernel;
  int stride;
  int padding;

  // Returns the pixel at a position of a window; it is outside the image if the position is
  // padding.
  __device__ int pixel(int window, int tap) const { return window * stride + tap - padding; }
  __device__ bool is_inside(int pixel) const { return pixel >= 0 && pixel < x; }
  // Returns the position of a pixel in a window.
  __device__ int tap(int window, int pixel) const { return pixel + padding - window * stride; }
  // The windows from first_window() to last_window() contain the pixel.
  __device__ int first_window(int pixel) const {
    const int behind = pixel + padding - kernel;
    return behind < 0 ? 0 : behind / stride + 1;
  }
  __device__ int last_window(int pixel) const { return min((pixel + padding) / stride, y - 1); }
  // Returns the number of a window's positions that are inside the image.
  __device__ int taps_inside(int window) const {
    return min(pixel(window, kernel), x) - max(pixel(window, 0), 0);
  }
};

struct Geometry {
  Axis rows;
  Axis columns;
  int packs_of_pixel;
  bool counts_padding;
  std::size_t x_packs;  // of the whole tensors
  std::size_t y_packs;

  __device__ int tap(int row, int column) const { return row * columns.kernel + column; }
  // Returns the divisor of a window's average.
  __device__ float divisor(int row, int column) const {
    const int taps = counts_padding ? rows.kernel * columns.kernel
                                    : rows.taps_inside(row) * columns.taps_inside(column);
    return static_cast<float>(taps);
  }
};

// Image, row, column and pack of pack `i` in a tensor of `height` by `width` images.
struct Place {
  __device__ Place(std::size_t i, int height, int width, int packs_of_pixel) {
    pack = static_cast<int>(i % packs_of_pixel);
    i /= packs_of_pixel;
    column = static_cast<int>(i % width);
    i /= width;
    row = static_cast<int>(i % height);
    image = i / height;
  }

  std::size_t image;
  int row;
  int column;
  int pack;
};

// Returns the index of the same pack at another pixel, possibly in a tensor of another image size.
__device__ std::size_t number_of(const Place& place, int height, int width, int packs_of_pixel,
                                 int row, int column) {
  return ((place.image * height + row) * width + column) * packs_of_pixel + place.pack;
}

// One pack of the index: a byte per lane, moved together.
template <class T>
struct alignas(Pack<T>::kLanes) Taps {
  std::uint8_t lanes[Pack<T>::kLanes];
};
template <class T>
__device__ Taps<T>* taps_at(std::uint8_t* index, std::size_t i) {
  return reinterpret_cast<Taps<T>*>(index) + i;
}
template <class T>
__device__ const Taps<T>* taps_at(const std::uint8_t* index, std::size_t i) {
  return reinterpret_cast<const Taps<T>*>(index) + i;
}

// The maximum is the first of equal values; a NaN is larger than all numbers.
template <class T>
__global__ void max_forward(const T* x, T* y, std::uint8_t* index, Geometry g) {
  for (std::size_t i = first_item(); i < g.y_packs; i += item_stride()) {
    const Place at{i, g.rows.y, g.columns.y, g.packs_of_pixel};
    Pack<T> best;
    Taps<T> where;
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      best.lanes[l] = -INFINITY;
      where.lanes[l] = 0;
    }
    for (int r = 0; r < g.rows.kernel; ++r) {
      const int row = g.rows.pixel(at.row, r);
      if (!g.rows.is_inside(row)) continue;
      for (int c = 0; c < g.columns.kernel; ++c) {
        const int column = g.columns.pixel(at.column, c);
        if (!g.columns.is_inside(column)) continue;
        const Pack<T> pack =
            load(x, number_of(at, g.rows.x, g.columns.x, g.packs_of_pixel, row, column));
#pragma unroll
        for (int l = 0; l < Pack<T>::kLanes; ++l) {
          if (pack.lanes[l] > best.lanes[l] || isnan(pack.lanes[l])) {
            best.lanes[l] = pack.lanes[l];
            where.lanes[l] = static_cast<std::uint8_t>(g.tap(r, c));
          }
        }
      }
    }
    store(y, i, best);
    *taps_at<T>(index, i) = where;
  }
}

template <class T>
__global__ void average_forward(const T* x, T* y, Geometry g) {
  for (std::size_t i = first_item(); i < g.y_packs; i += item_stride()) {
    const Place at{i, g.rows.y, g.columns.y, g.packs_of_pixel};
    Pack<T> sum{};
    for (int r = 0; r < g.rows.kernel; ++r) {
      const int row = g.rows.pixel(at.row, r);
      if (!g.rows.is_inside(row)) continue;
      for (int c = 0; c < g.columns.kernel; ++c) {
        const int column = g.columns.pixel(at.column, c);
        if (!g.columns.is_inside(column)) continue;
        const Pack<T> pack =
            load(x, number_of(at, g.rows.x, g.columns.x, g.packs_of_pixel, row, column));
#pragma unroll
        for (int l = 0; l < Pack<T>::kLanes; ++l) sum.lanes[l] += pack.lanes[l];
      }
    }
    const float divisor = g.divisor(at.row, at.column);
#pragma unroll
    for (float& lane : sum.lanes) lane /= divisor;
    store(y, i, sum);
  }
}

// Calls visit(row, column, index of the pack in y) for all windows that contain the pixel of x.
template <class Visit>
__device__ void for_each_window(const Geometry& g, const Place& at, const Visit& visit) {
  const int last_row = g.rows.last_window(at.row);
  const int last_column = g.columns.last_window(at.column);
  for (int row = g.rows.first_window(at.row); row <= last_row; ++row) {
    for (int column = g.columns.first_window(at.column); column <= last_column; ++column) {
      visit(row, column, number_of(at, g.rows.y, g.columns.y, g.packs_of_pixel, row, column));
    }
  }
}

template <class T>
__global__ void max_backward(const T* dy, const std::uint8_t* index, T* dx, Geometry g) {
  for (std::size_t i = first_item(); i < g.x_packs; i += item_stride()) {
    const Place at{i, g.rows.x, g.columns.x, g.packs_of_pixel};
    Pack<T> sum{};
    for_each_window(g, at, [&](int row, int column, std::size_t window) {
      const int tap = g.tap(g.rows.tap(row, at.row), g.columns.tap(column, at.column));
      const Pack<T> gradient = load(dy, window);
      const Taps<T> where = *taps_at<T>(index, window);
#pragma unroll
      for (int l = 0; l < Pack<T>::kLanes; ++l) {
        if (where.lanes[l] == tap) sum.lanes[l] += gradient.lanes[l];
      }
    });
    store(dx, i, sum);
  }
}

template <class T>
__global__ void average_backward(const T* dy, T* dx, Geometry g) {
  for (std::size_t i = first_item(); i < g.x_packs; i += item_stride()) {
    const Place at{i, g.rows.x, g.columns.x, g.packs_of_pixel};
    Pack<T> sum{};
    for_each_window(g, at, [&](int row, int column, std::size_t window) {
      const float divisor = g.divisor(row, column);
      const Pack<T> gradient = load(dy, window);
#pragma unroll
      for (int l = 0; l < Pack<T>::kLanes; ++l) sum.lanes[l] += gradient.lanes[l] / divisor;
    });
    store(dx, i, sum);
  }
}

int to_int(std::size_t value) { return static_cast<int>(value); }

template <class T, class PoolOperation>
Geometry geometry_of(const PoolOperation& op) {
  const auto& [kind, kernel, stride, padding, counts_padding, rounds_up] = op.pool;
  return {.rows = {.x = to_int(op.x.image.height),
                   .y = to_int(op.y.image.height),
                   .kernel = to_int(kernel.height),
                   .stride = to_int(stride.height),
                   .padding = to_int(padding.height)},
          .columns = {.x = to_int(op.x.image.width),
                      .y = to_int(op.y.image.width),
                      .kernel = to_int(kernel.width),
                      .stride = to_int(stride.width),
                      .padding = to_int(padding.width)},
          .packs_of_pixel = to_int(Layout::padded(op.x.image.channels) / Pack<T>::kLanes),
          .counts_padding = counts_padding,
          .x_packs = pack_count<T>(op.x),
          .y_packs = pack_count<T>(op.y)};
}

bool is_max(const nets::Pool& pool) { return pool.kind == nets::PoolKind::kMax; }

}  // namespace

// Average pooling has no index.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolForward& op) {
  if (is_max(op.pool) && op.pool.kernel.height * op.pool.kernel.width > kMaxTaps) {
    throw um::Error{"max pooling over " + std::to_string(op.pool.kernel.height) + "x" +
                    std::to_string(op.pool.kernel.width) +
                    " pixels is too large for a GPU; it takes windows of up to " +
                    std::to_string(kMaxTaps) + " pixels"};
  }
  return kernel_of(op, [machine, op](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      const Geometry g = geometry_of<T>(op);
      const T* const x = tensor<T>(operands.in.x);
      T* const y = tensor<T>(operands.out.y);
      if (is_max(op.pool)) {
        launch(machine.stream, g.y_packs, max_forward<T>, x, y,
               tensor<std::uint8_t>(operands.out.index), g);
      } else {
        launch(machine.stream, g.y_packs, average_forward<T>, x, y, g);
      }
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolBackward& op) {
  return kernel_of(op, [machine, op](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      const Geometry g = geometry_of<T>(op);
      const T* const dy = tensor<T>(operands.in.dy);
      T* const dx = tensor<T>(operands.out.dx);
      if (is_max(op.pool)) {
        launch(machine.stream, g.x_packs, max_backward<T>, dy,
               tensor<const std::uint8_t>(operands.in.index), dx, g);
      } else {
        launch(machine.stream, g.x_packs, average_backward<T>, dy, dx, g);
      }
    });
  });
}

um::Bytes saved_bytes(const Machine& /*machine*/, const PoolForward& op) {
  return um::Bytes{is_max(op.pool) ? Layout::elements(op.y) : 0};
}

}  // namespace spillway::cuda
