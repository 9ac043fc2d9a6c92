#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Saved statistics of a row: its mean if rows are centred, and its scale.
struct Statistics {
  float mean;
  float scale;
};

__device__ void keep(float* saved, std::size_t row, bool is_centred, Statistics of) {
  if (is_centred) saved[2 * row] = of.mean;
  saved[is_centred ? 2 * row + 1 : row] = of.scale;
}
__device__ Statistics kept(const float* saved, std::size_t row, bool is_centred) {
  if (is_centred) return {.mean = saved[2 * row], .scale = saved[2 * row + 1]};
  return {.mean = 0.F, .scale = saved[row]};
}

// Each warp handles one row at a time. `beta` may be null.
template <class T>
__global__ void normalize_rows(const T* x, const float* gamma, const float* beta, T* y,
                               float* saved, float epsilon, TokenMatrix m) {
  const std::size_t lane = threadIdx.x % kWarp;
  const auto count = static_cast<float>(m.channels);
  for (std::size_t row = first_item() / kWarp; row < m.rows; row += item_stride() / kWarp) {
    const std::size_t begin = row * m.stride;
    float sum = 0.F;
    for (std::size_t c = lane; c < m.channels; c += kWarp) sum += load_one(x, begin + c);
    const float mean = beta != nullptr ? warp_sum(sum) / count : 0.F;
    float squares = 0.F;
    for (std::size_t c = lane; c < m.channels; c += kWarp) {
      const float distance = load_one(x, begin + c) - mean;
      squares += distance * distance;
    }
    const float scale = 1.F / sqrtf(warp_sum(squares) / count + epsilon);
    if (lane == 0) keep(saved, row, beta != nullptr, {.mean = mean, .scale = scale});
    for (std::size_t c = lane; c < m.stride; c += kWarp) {
      float value = 0.F;
      if (c < m.channels) {
        value = (load_one(x, begin + c) - mean) * scale * gamma[c];
        if (beta != nullptr) value += beta[c];
      }
      store_one(y, begin + c, value);
    }
  }
}

// dx = scale (g - mean(g) - n mean(g n)), where g = dy gamma and n = (x - mean) scale. The term
// mean(g) is left out if rows are not centred. dx may be dy.
template <class T>
__global__ void differentiate_rows(const T* x, const T* dy, const float* gamma, const float* saved,
                                   bool is_centred, T* dx, TokenMatrix m) {
  const std::size_t lane = threadIdx.x % kWarp;
  const auto count = static_cast<float>(m.channels);
  for (std::size_t row = first_item() / kWarp; row < m.rows; row += item_stride() / kWarp) {
    const std::size_t begin = row * m.stride;
    const Statistics of = kept(saved, row, is_centred);
    float sum = 0.F;
    float product = 0.F;
    for (std::size_t c = lane; c < m.channels; c += kWarp) {
      const float slope = load_one(dy, begin + c) * gamma[c];
      sum += slope;
      product += slope * ((load_one(x, begin + c) - of.mean) * of.scale);
    }
    const float mean_slope = is_centred ? warp_sum(sum) / count : 0.F;
    const float mean_product = warp_sum(product) / count;
    for (std::size_t c = lane; c < m.stride; c += kWarp) {
      float value = 0.F;
      if (c < m.channels) {
        const float normal = (load_one(x, begin + c) - of.mean) * of.scale;
        value =
            of.scale * (load_one(dy, begin + c) * gamma[c] - mean_slope - normal * mean_product);
      }
      store_one(dx, begin + c, value);
    }
  }
}

// Number of chunks of rows in which the gradients of gamma and beta are summed, on every device.
constexpr std::size_t kChunks = 64;

// One thread per channel and chunk. `sums` has a row per chunk: the sums for gamma, followed by
// those for beta if rows are centred.
template <class T>
__global__ void sum_chunks(const T* x, const T* dy, const float* saved, bool is_centred,
                           float* sums, TokenMatrix m) {
  const std::size_t width = (is_centred ? 2 : 1) * m.stride;
  const std::size_t each = (m.rows + kChunks - 1) / kChunks;
  for (std::size_t i = first_item(); i < kChunks * m.stride; i += item_stride()) {
    const std::size_t chunk = i / m.stride;
    const std::size_t c = i % m.stride;
    const std::size_t end = min((chunk + 1) * each, m.rows);
    float dgamma = 0.F;
    float dbeta = 0.F;
    for (std::size_t row = chunk * each; row < end; ++row) {
      const Statistics of = kept(saved, row, is_centred);
      const float slope = load_one(dy, row * m.stride + c);
      dgamma += slope * ((load_one(x, row * m.stride + c) - of.mean) * of.scale);
      dbeta += slope;
    }
    sums[chunk * width + c] = c < m.channels ? dgamma : 0.F;
    if (is_centred) sums[chunk * width + m.stride + c] = c < m.channels ? dbeta : 0.F;
  }
}

__global__ void sum_all(const float* sums, float* gradient, std::size_t width) {
  for (std::size_t i = first_item(); i < width; i += item_stride()) {
    float sum = 0.F;
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) sum += sums[chunk * width + i];
    gradient[i] = sum;
  }
}

std::size_t gradient_width(const RowNormBackward& op) {
  return (op.is_centred ? 2 : 1) * Layout::padded(op.x.image.channels);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RowNormForward& op) {
  return kernel_of(op, [machine, op, m = token_matrix(op.x)](const auto& operands) {
    const float* const gamma = tensor<const float>(operands.in.parameters);
    const float* const beta = op.is_centred ? gamma + m.stride : nullptr;
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.rows * kWarp, normalize_rows<T>, tensor<const T>(operands.in.x),
             gamma, beta, tensor<T>(operands.out.y), tensor<float>(operands.out.saved), op.epsilon,
             m);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RowNormBackward& op) {
  const auto differentiate = [machine, op, m = token_matrix(op.x)](const auto& operands,
                                                                   const auto& arguments) {
    const float* const saved = tensor<const float>(operands.in.saved);
    float* const sums = tensor<float>(arguments.workspace);
    const std::size_t width = gradient_width(op);
    with_element(machine.precision, [&]<class T>(T) {
      const T* const x = tensor<const T>(operands.in.x);
      const T* const dy = tensor<const T>(operands.in.dy);
      launch(machine.stream, kChunks * m.stride, sum_chunks<T>, x, dy, saved, op.is_centred, sums,
             m);
      launch(machine.stream, width, sum_all, sums, tensor<float>(operands.out.dparameters), width);
      // Last, since dx may overwrite dy.
      launch(machine.stream, m.rows * kWarp, differentiate_rows<T>, x, dy,
             tensor<const float>(operands.in.parameters), saved, op.is_centred,
             tensor<T>(operands.out.dx), m);
    });
  };
  return kernel_of(op, differentiate);
}

um::Bytes workspace_of(const Machine& /*machine*/, const RowNormBackward& op) {
  return float_bytes(kChunks * gradient_width(op));
}

um::Bytes saved_bytes(const Machine& /*machine*/, const RowNormForward& op) {
  return float_bytes(rows_of(op.x).batch * (op.is_centred ? 2 : 1));
}

}  // namespace spillway::cuda
