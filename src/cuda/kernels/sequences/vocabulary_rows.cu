#include <cstdint>
#include <utility>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/vocabulary_rows.h"
#include "src/cuda/kernels/softmax_cross_entropy.cuh"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/step_numbers.h"

namespace spillway::cuda {
namespace {

// Each warp handles one row at a time.
template <class T>
__global__ void judge(LogitRows rows, const std::int32_t* labels, const float* share,
                      float smoothing, TokenLoss* losses, T* slopes) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const auto classes = static_cast<int>(rows.vocabulary);
  const auto stride = static_cast<int>(rows.stride);
  for (std::size_t n = first_item() / kWarp; n < rows.rows; n += item_stride() / kWarp) {
    const float* const row = rows.logits + n * rows.stride;
    const auto logit = [row, bias = rows.bias](int v) {
      return bias == nullptr ? row[v] : row[v] + bias[v];
    };
    const std::int32_t label = labels[n];
    const Largest largest = largest_of(logit, classes);
    const double sum = exponential_sum(logit, classes, largest.logit);
    if (lane == 0) losses[n] = judged<TokenLoss>(logit, classes, label, largest, sum);
    if (slopes == nullptr) continue;
    if (smoothing > 0 && label >= 0) {
      const double logits = logit_sum(logit, classes);
      if (lane == 0) {
        losses[n].loss = smoothed(losses[n].loss, smoothing, classes, largest.logit, sum, logits);
      }
    }
    __syncwarp();  // lane 0 has read the label's logit, which another lane overwrites
    const float part = *share;
    const float scale = label < 0 ? 0.F : static_cast<float>(static_cast<double>(part) / sum);
    for (int v = lane; v < stride; v += kWarp) {
      float slope = 0.F;
      if (v < classes) {
        slope = expf(logit(v) - largest.logit) * scale;
        if (label >= 0) slope -= taken(v == label, part, smoothing, classes);
      }
      store_one(slopes + n * rows.stride, v, slope);
    }
  }
}

template <class T>
__global__ void sum_rows(const T* slopes, LogitRows rows, float* sums, bool adds) {
  for (std::size_t v = first_item(); v < rows.stride; v += item_stride()) {
    float sum = adds ? sums[v] : 0.F;
    for (std::size_t n = 0; n < rows.rows; ++n) sum += load_one(slopes, n * rows.stride + v);
    sums[v] = sum;
  }
}

// Each warp computes one logit at a time. `bias` may be null. A position after the last token gives
// NaNs, since device code cannot report errors.
template <class T>
__global__ void multiply_rows(const T* x, const float* table, const float* bias,
                              const std::uint64_t* step_position, TokenMatrix m,
                              std::size_t vocabulary, float* logits) {
  const std::uint64_t position = *step_position;
  const auto lane = static_cast<std::size_t>(threadIdx.x % kWarp);
  const std::size_t count = m.rows / m.tokens * vocabulary;
  for (std::size_t i = first_item() / kWarp; i < count; i += item_stride() / kWarp) {
    const std::size_t sample = i / vocabulary;
    const std::size_t v = i % vocabulary;
    float sum = 0.F;
    if (position < m.tokens) {
      const std::size_t row = (sample * m.tokens + position) * m.stride;
      for (std::size_t c = lane; c < m.channels; c += kWarp) {
        sum += load_one(x, row + c) * table[v * m.stride + c];
      }
    } else {
      sum = NAN;
    }
    sum = warp_sum(sum);
    if (lane == 0) logits[i] = bias == nullptr ? sum : sum + bias[v];
  }
}

}  // namespace

void vocabulary_share(const Machine& machine, const std::int32_t* labels, std::size_t count,
                      const std::uint64_t* step_whole, float* share) {
  launch(machine.stream, 1, compute_share, labels, count, 1, step_whole, 1.F, share);
}

void judge_rows(const Machine& machine, const LogitRows& rows, const std::int32_t* labels,
                const float* share, float smoothing, TokenLoss* losses, std::byte* slopes) {
  with_element(machine.precision, [&]<class T>(T) {
    launch(machine.stream, rows.rows * kWarp, judge<T>, rows, labels, share, smoothing, losses,
           tensor<T>(slopes));
  });
}

void sum_columns(const Machine& machine, const LogitRows& rows, const std::byte* slopes,
                 float* sums, bool adds) {
  with_element(machine.precision, [&]<class T>(T) {
    launch(machine.stream, rows.stride, sum_rows<T>, reinterpret_cast<const T*>(slopes), rows, sums,
           adds);
  });
}

void write_vocabulary_result(const Machine& machine, const TokenLoss* losses, std::size_t count,
                             const float* share, float* result) {
  launch(machine.stream, 1, write_result<TokenLoss>, losses, count, share, false, result);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLogits& op) {
  auto position = machine.numbers->add(
      [](const StepContext& context) { return std::uint64_t{context.position}; });
  auto multiply = [machine, op, m = token_matrix(op.geometry.x),
                   position = std::move(position)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, op.logit_count() * kWarp, multiply_rows<T>,
             tensor<const T>(operands.in.x), tensor<const float>(operands.in.table),
             op.geometry.bias ? tensor<const float>(operands.in.bias) : nullptr, position.get(), m,
             op.geometry.vocabulary, tensor<float>(operands.out.logits));
    });
  };
  return kernel_of(op, std::move(multiply));
}

}  // namespace spillway::cuda
