#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

// A block handles one pixel at a time, with its channels in shared memory. Lines have zeros on both
// sides for windows that extend beyond them. Padding channels are zero: they add nothing to
// neighbouring windows, and x = 0 gives y = 0 and dx = 0.
struct Norm {
  std::size_t pixels;
  int channels;  // includes padding
  int border;    // neighbours on either side of a channel in its window
  float scale;   // alpha / size
  float beta;
  float k;

  __host__ __device__ int line() const { return channels + 2 * border; }
};

// Sums the window around channel `c` of a line.
__device__ float window_sum(const float* line, int c, const Norm& norm) {
  float sum = 0.F;
  for (int i = 0; i <= 2 * norm.border; ++i) sum += line[c + i];
  return sum;
}

// Called once, since nothing else writes to the border.
__device__ void clear_border(float* line, const Norm& norm) {
  for (int i = threadIdx.x; i < norm.border; i += blockDim.x) {
    line[i] = 0.F;
    line[norm.border + norm.channels + i] = 0.F;
  }
}

// Returns k + alpha / size * (window sum of squares).
__device__ float base_of(const float* squares, int c, const Norm& norm) {
  return norm.k + norm.scale * window_sum(squares, c, norm);
}

// Writes the squares of a pixel's channels; the first one is number `begin` of `x`.
template <class T>
__device__ void load_squares(const T* x, std::size_t begin, float* squares, const Norm& norm) {
  for (int c = threadIdx.x; c < norm.channels; c += blockDim.x) {
    const float value = load_one(x, begin + c);
    squares[norm.border + c] = value * value;
  }
}

template <class T>
__global__ void lrn_forward(const T* x, T* y, Norm norm) {
  float* const squares = shared_floats();
  clear_border(squares, norm);
  for (std::size_t pixel = blockIdx.x; pixel < norm.pixels; pixel += gridDim.x) {
    const std::size_t begin = pixel * norm.channels;
    load_squares(x, begin, squares, norm);
    __syncthreads();
    for (int c = threadIdx.x; c < norm.channels; c += blockDim.x) {
      const float value = load_one(x, begin + c);
      store_one(y, begin + c, value * powf(base_of(squares, c, norm), -norm.beta));
    }
    __syncthreads();  // before the next pixel overwrites the squares
  }
}

// dx = dy / base^beta - 2 alpha / size beta x * (window sum of dy y / base). dx may be dy: a thread
// reads and writes the same channels of dy, and neighbours' terms are in shared memory.
template <class T>
__global__ void lrn_backward(const T* x, const T* y, const T* dy, T* dx, Norm norm) {
  float* const squares = shared_floats();
  float* const terms = squares + norm.line();
  float* const bases = terms + norm.line();
  clear_border(squares, norm);
  clear_border(terms, norm);
  for (std::size_t pixel = blockIdx.x; pixel < norm.pixels; pixel += gridDim.x) {
    const std::size_t begin = pixel * norm.channels;
    load_squares(x, begin, squares, norm);
    __syncthreads();
    for (int c = threadIdx.x; c < norm.channels; c += blockDim.x) {
      bases[c] = base_of(squares, c, norm);
      terms[norm.border + c] = load_one(dy, begin + c) * load_one(y, begin + c) / bases[c];
    }
    __syncthreads();
    const float factor = 2.F * norm.scale * norm.beta;
    for (int c = threadIdx.x; c < norm.channels; c += blockDim.x) {
      const float direct = load_one(dy, begin + c) * powf(bases[c], -norm.beta);
      const float value = load_one(x, begin + c);
      store_one(dx, begin + c, direct - factor * value * window_sum(terms, c, norm));
    }
    // No barrier needed: all threads pass the barrier on the next pixel's squares before any writes
    // terms.
  }
}

Norm norm_of(const TensorShape& x, const nets::LocalResponseNorm& norm) {
  return {.pixels = x.batch * x.image.height * x.image.width,
          .channels = static_cast<int>(Layout::padded(x.image.channels)),
          .border = static_cast<int>(norm.size / 2),
          .scale = norm.alpha / static_cast<float>(norm.size),
          .beta = norm.beta,
          .k = norm.k};
}

// Enqueues `kernel` with a block per pixel and `lines` lines of shared memory.
template <class... Parameters, class... Arguments>
void launch_pixels(cudaStream_t stream, const Norm& norm, int lines, void (*kernel)(Parameters...),
                   Arguments... arguments) {
  if (norm.pixels == 0) return;
  constexpr auto kLanes = static_cast<int>(kWarp);
  const int rounded = (norm.channels + kLanes - 1) / kLanes * kLanes;
  const auto threads = static_cast<unsigned>(std::min<int>(rounded, kThreads));
  const auto blocks = static_cast<unsigned>(std::min(norm.pixels, kMaxBlocks));
  const std::size_t shared = sizeof(float) * static_cast<std::size_t>(lines * norm.line());
  const Grid grid{.blocks = dim3{blocks}, .threads = dim3{threads}, .shared_bytes = shared};
  enqueue(stream, grid, kernel, arguments..., norm);
}

constexpr int kForwardLines = 1;
constexpr int kBackwardLines = 3;

Norm with_room(const Norm& norm) {
  constexpr std::size_t kMost = kSharedBytes / (sizeof(float) * kBackwardLines);
  if (static_cast<std::size_t>(norm.line()) > kMost) {
    throw um::Error{"local response norm over " + std::to_string(norm.line()) +
                    " channels, with those that its windows stick out, is too large for a GPU; it "
                    "takes up to " +
                    std::to_string(kMost)};
  }
  return norm;
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LrnForward& op) {
  const Norm norm = with_room(norm_of(op.x, op.norm));
  return kernel_of(op, [machine, norm](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch_pixels(machine.stream, norm, kForwardLines, lrn_forward<T>, tensor<T>(operands.in.x),
                    tensor<T>(operands.out.y));
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LrnBackward& op) {
  const Norm norm = with_room(norm_of(op.x, op.norm));
  return kernel_of(op, [machine, norm](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch_pixels(machine.stream, norm, kBackwardLines, lrn_backward<T>, tensor<T>(operands.in.x),
                    tensor<T>(operands.in.y), tensor<T>(operands.in.dy),
                    tensor<T>(operands.out.dx));
    });
  });
}

}  // namespace spillway::cuda
