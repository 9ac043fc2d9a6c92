#include <algorithm>
#include <cmath>
#include <vector>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "um/machine/wide.h"

namespace spillway::host {
namespace {

// Number of chunks of rows in which the gradients of gamma and beta are summed, independent of the
// number of threads.
constexpr std::size_t kChunks = 16;

// Statistics of a row: y = (x - mean) scale, before gamma.
struct Statistics {
  float mean;
  float scale;
};

template <class T>
SPILLWAY_WIDE float mean_of(const T* x, std::size_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t c = 0; c < count; ++c) sum += x[c];
  return sum / static_cast<float>(count);
}

template <class T>
SPILLWAY_WIDE float mean_square(const T* x, float mean, std::size_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t c = 0; c < count; ++c) sum += (x[c] - mean) * (x[c] - mean);
  return sum / static_cast<float>(count);
}

// Saved statistics of rows: a scale per row, and before it the mean if rows are centred.
template <class Norm>
class SavedStatistics {
 public:
  SavedStatistics(const Norm& op, float* saved) : is_centred_{op.is_centred}, saved_{saved} {}

  void keep(std::size_t row, const Statistics& of) {
    if (is_centred_) saved_[2 * row] = of.mean;
    saved_[is_centred_ ? 2 * row + 1 : row] = of.scale;
  }
  [[nodiscard]] Statistics of(std::size_t row) const {
    if (is_centred_) return {.mean = saved_[2 * row], .scale = saved_[2 * row + 1]};
    return {.mean = 0, .scale = saved_[row]};
  }

 private:
  bool is_centred_;
  float* saved_;
};

// y = (x - mean) scale gamma + beta; a null beta is left out.
template <class T>
SPILLWAY_WIDE void normalise(const T* x, const Statistics& of, const float* gamma,
                             const float* beta, T* y, std::size_t count) {
  const float mean = of.mean;
  const float scale = of.scale;
  if (beta == nullptr) {
#pragma omp simd
    for (std::size_t c = 0; c < count; ++c) y[c] = (x[c] - mean) * scale * gamma[c];
    return;
  }
#pragma omp simd
  for (std::size_t c = 0; c < count; ++c) y[c] = (x[c] - mean) * scale * gamma[c] + beta[c];
}

// dgamma += dy (x - mean) scale; dbeta += dy unless dbeta is null.
template <class T>
SPILLWAY_WIDE void add_row_slopes(const T* x, const T* dy, const Statistics& of, float* dgamma,
                                  float* dbeta, std::size_t count) {
  const float mean = of.mean;
  const float scale = of.scale;
#pragma omp simd
  for (std::size_t c = 0; c < count; ++c) dgamma[c] += dy[c] * ((x[c] - mean) * scale);
  if (dbeta == nullptr) return;
#pragma omp simd
  for (std::size_t c = 0; c < count; ++c) dbeta[c] += dy[c];
}

// dx = scale (g - mean(g) - n mean(g n)), where g = dy gamma and n = (x - mean) scale. The term
// mean(g) is left out if rows are not centred.
template <class T>
SPILLWAY_WIDE void differentiate_row(const T* x, const T* dy, const float* gamma,
                                     const Statistics& of, bool is_centred, T* dx,
                                     std::size_t count) {
  const float mean = of.mean;
  const float scale = of.scale;
  float sum = 0;
  float product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::size_t c = 0; c < count; ++c) {
    const float slope = dy[c] * gamma[c];
    sum += slope;
    product += slope * ((x[c] - mean) * scale);
  }
  const float mean_slope = is_centred ? sum / static_cast<float>(count) : 0.F;
  const float mean_product = product / static_cast<float>(count);
#pragma omp simd
  for (std::size_t c = 0; c < count; ++c) {
    const float normal = (x[c] - mean) * scale;
    dx[c] = scale * (dy[c] * gamma[c] - mean_slope - normal * mean_product);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RowNormForward& op) {
  const TokenRows rows{machine.layout, op.x};
  const std::size_t second = parts_of(machine.layout, op.parameters()).second_begin;
  return element_kernel_of(machine, op, [op, rows, second](auto elements, const auto& operands) {
    const float* const gamma = floats(operands.in.parameters);
    const float* const beta = op.is_centred ? gamma + second : nullptr;
    SavedStatistics saved{op, floats(operands.out.saved)};
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < rows.count; ++i) {
      const auto* const x = elements(operands.in.x) + i * rows.stride;
      auto* const y = elements(operands.out.y) + i * rows.stride;
      const float mean = op.is_centred ? mean_of(x, rows.channels) : 0.F;
      const float scale = 1.F / std::sqrt(mean_square(x, mean, rows.channels) + op.epsilon);
      const Statistics statistics{.mean = mean, .scale = scale};
      saved.keep(i, statistics);
      normalise(x, statistics, gamma, beta, y, rows.channels);
      rows.zero_padding(y);
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RowNormBackward& op) {
  const TokenRows rows{machine.layout, op.x};
  const ParameterParts parts = parts_of(machine.layout, op.forward().parameters());
  const auto differentiate = [op, rows, parts](auto elements, const auto& operands,
                                               const auto& arguments) {
    using T = typename decltype(elements)::Type;
    const SavedStatistics saved{op, floats(operands.in.saved)};
    float* const sums = floats(arguments.workspace);
    const std::size_t per_chunk = (rows.count + kChunks - 1) / kChunks;
#pragma omp parallel for schedule(static)
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      float* const dgamma = sums + chunk * parts.total;
      float* const dbeta = op.is_centred ? dgamma + parts.second_begin : nullptr;
      std::fill_n(dgamma, parts.total, 0.F);
      std::vector<T> own(op.accumulates ? rows.channels : 0);
      const std::size_t end = std::min((chunk + 1) * per_chunk, rows.count);
      for (std::size_t i = chunk * per_chunk; i < end; ++i) {
        const T* const x = elements(operands.in.x) + i * rows.stride;
        const T* const dy = elements(operands.in.dy) + i * rows.stride;
        T* const dx = elements(operands.out.dx) + i * rows.stride;
        add_row_slopes(x, dy, saved.of(i), dgamma, dbeta, rows.channels);
        differentiate_row(x, dy, floats(operands.in.parameters), saved.of(i), op.is_centred,
                          op.accumulates ? own.data() : dx, rows.channels);
        // Rounded before it is added, like a gradient in a block of its own.
        for (std::size_t c = 0; c < own.size(); ++c) dx[c] = dx[c] + own[c];
        rows.zero_padding(dx);
      }
    }
    float* const gradient = floats(operands.out.dparameters);
    std::copy_n(sums, parts.total, gradient);
    for (std::size_t chunk = 1; chunk < kChunks; ++chunk) {
      const float* const own = sums + chunk * parts.total;
      for (std::size_t c = 0; c < parts.total; ++c) gradient[c] += own[c];
    }
  };
  return element_kernel_of(machine, op, differentiate);
}

um::Bytes workspace_of(const Machine& machine, const RowNormBackward& op) {
  return float_bytes(kChunks * parts_of(machine.layout, op.forward().parameters()).total);
}

um::Bytes saved_bytes(const Machine& /*machine*/, const RowNormForward& op) {
  return float_bytes(rows_of(op.x).batch * (op.is_centred ? 2 : 1));
}

}  // namespace spillway::host
