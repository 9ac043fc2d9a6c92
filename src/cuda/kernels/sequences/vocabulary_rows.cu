#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <utility>

#include "src/cuda/kernels/channel_tile.cuh"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/vocabulary_rows.h"
#include "src/cuda/kernels/softmax_cross_entropy.cuh"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/step_numbers.h"

namespace spillway::cuda {
namespace {

// Threads of a block, which judges one row at a time. More than half of what a multiprocessor runs,
// so that all rows that are being judged fit into the second-level cache, and their second read
// does not go to memory.
constexpr unsigned kJudgeThreads = 1024;
constexpr unsigned kJudgeWarps = kJudgeThreads / kWarp;

// Sums over some logits of a row.
struct LogitSums {
  Largest largest;
  double exponentials;  // of the distances to the largest
  double logits;

  __device__ static LogitSums of_none() {
    return {.largest = {.logit = -INFINITY, .at = INT_MAX}, .exponentials = 0, .logits = 0};
  }

  // Adds a group that begins with logit `first`, behind all others.
  __device__ void add(const Group& values, int first, int classes) {
    Largest most = largest;
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      const bool is_larger = first + l < classes && values.lanes[l] > most.logit;
      if (is_larger) most = {.logit = values.lanes[l], .at = first + l};
    }
    if (most.logit > largest.logit) exponentials *= distance(largest.logit, most.logit);
    largest = most;
    const float origin = most.logit == -INFINITY ? 0.F : most.logit;  // a NaN shows, too
    float sum = 0.F;
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      if (first + l < classes) sum += expf(values.lanes[l] - origin);
    }
    exponentials += static_cast<double>(sum);
  }
  __device__ void merge(const LogitSums& other) {
    const float less = fminf(largest.logit, other.largest.logit);
    const float more = fmaxf(largest.logit, other.largest.logit);
    const double factor = less == more ? 1.0 : distance(less, more);
    const double own = largest.logit == less ? exponentials * factor : exponentials;
    const double others =
        other.largest.logit == less ? other.exponentials * factor : other.exponentials;
    exponentials = own + others;
    logits += other.logits;
    if (other.largest.logit > largest.logit ||
        (other.largest.logit == largest.logit && other.largest.at < largest.at)) {
      largest = other.largest;
    }
  }

 private:
  static __device__ double distance(float less, float more) {
    return exp(static_cast<double>(less) - static_cast<double>(more));
  }
};

// Returns the sums of a warp on its first lane.
__device__ LogitSums merged_in_warp(LogitSums sums) {
#pragma unroll 1
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    LogitSums other;
    other.largest.logit = __shfl_xor_sync(kAllLanes, sums.largest.logit, distance);
    other.largest.at = __shfl_xor_sync(kAllLanes, sums.largest.at, distance);
    other.exponentials = __shfl_xor_sync(kAllLanes, sums.exponentials, distance);
    other.logits = __shfl_xor_sync(kAllLanes, sums.logits, distance);
    sums.merge(other);
  }
  return sums;
}

// Returns the sums of a block on all of its threads.
__device__ LogitSums merged_in_block(const LogitSums& own) {
  __shared__ LogitSums of_warps[kJudgeWarps];
  const unsigned warp = threadIdx.x / kWarp;
  const LogitSums of_warp = merged_in_warp(own);
  __syncthreads();  // all have read the sums of the previous row
  if (threadIdx.x % kWarp == 0) of_warps[warp] = of_warp;
  __syncthreads();
  if (warp == 0) {
    const LogitSums all = merged_in_warp(of_warps[threadIdx.x % kJudgeWarps]);
    if (threadIdx.x == 0) of_warps[0] = all;
  }
  __syncthreads();
  return of_warps[0];
}

// A row of logits; biases may be null.
struct LogitRow {
  const float* logits;
  const float* biases;

  [[nodiscard]] __device__ float operator()(int v) const {
    return biases == nullptr ? logits[v] : logits[v] + biases[v];
  }
  [[nodiscard]] __device__ Group group(std::size_t g) const {
    Group values = load_group(logits, g);
    if (biases == nullptr) return values;
    const Group more = load_group(biases, g);
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) values.lanes[l] += more.lanes[l];
    return values;
  }
};

__device__ LogitSums sums_of(const LogitRow& row, int classes, std::size_t groups, bool smooths) {
  LogitSums sums = LogitSums::of_none();
#pragma unroll 1
  for (std::size_t g = threadIdx.x; g < groups; g += kJudgeThreads) {
    const Group values = row.group(g);
    const int first = static_cast<int>(g) * kGroupLanes;
    sums.add(values, first, classes);
    if (!smooths) continue;
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      if (first + l < classes) sums.logits += static_cast<double>(values.lanes[l]);
    }
  }
  return merged_in_block(sums);
}

// How a row's gradient follows from its logits.
struct SlopeRule {
  std::int32_t label;
  int classes;
  float largest;
  float scale;
  float of_label;  // subtracted from the label's softmax times scale
  float of_other;  // the same for all other classes

  __device__ float operator()(float logit, int v) const {
    const float slope = expf(logit - largest) * scale - (v == label ? of_label : of_other);
    return v < classes ? slope : 0.F;
  }
};

// Writes the gradient over the row. Its elements are as large as the logits or smaller, so that
// those of a tile of groups overwrite this tile and earlier ones.
template <class T>
__device__ void write_slopes(const LogitRow& row, std::size_t groups, const SlopeRule& rule,
                             T* slopes) {
  for (std::size_t first = 0; first < groups; first += kJudgeThreads) {
    const std::size_t g = first + threadIdx.x;
    Group values{};
    if (g < groups) values = row.group(g);
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      values.lanes[l] = rule(values.lanes[l], static_cast<int>(g) * kGroupLanes + l);
    }
    __syncthreads();  // all have read their part of the tile
    if (g < groups) store_group(slopes, g, values);
  }
}

// Each block handles one row at a time. With `share`, also writes the gradient.
template <class T>
__global__ void __launch_bounds__(kJudgeThreads, 1)
    judge(LogitRows rows, const std::int32_t* labels, const float* share, float smoothing,
          TokenLoss* losses) {
  const auto classes = static_cast<int>(rows.vocabulary);
  const std::size_t groups = rows.stride / kGroupLanes;
  for (std::size_t n = blockIdx.x; n < rows.rows; n += gridDim.x) {
    const LogitRow row{.logits = rows.logits + n * rows.stride, .biases = rows.bias};
    const std::int32_t label = labels[n];
    const bool smooths = share != nullptr && smoothing > 0 && label >= 0;
    const LogitSums sums = sums_of(row, classes, groups, smooths);
    if (threadIdx.x == 0) {
      TokenLoss loss = judged<TokenLoss>(row, classes, label, sums.largest, sums.exponentials);
      if (smooths) {
        loss.loss = smoothed(loss.loss, smoothing, classes, sums.largest.logit, sums.exponentials,
                             sums.logits);
      }
      losses[n] = loss;
    }
    if (share == nullptr) continue;
    __syncthreads();  // the label's logit has been read
    const float part = label < 0 ? 0.F : *share;
    const double scale = label < 0 ? 0.0 : static_cast<double>(part) / sums.exponentials;
    write_slopes(row, groups,
                 {.label = label,
                  .classes = classes,
                  .largest = sums.largest.logit,
                  .scale = static_cast<float>(scale),
                  .of_label = taken(true, part, smoothing, classes),
                  .of_other = taken(false, part, smoothing, classes)},
                 reinterpret_cast<T*>(rows.logits + n * rows.stride));
  }
}

template <class T>
__global__ void sum_rows(LogitRows rows, std::size_t slope_stride, float* sums, bool adds) {
  const T* const slopes = reinterpret_cast<const T*>(rows.logits);
  for (std::size_t v = first_item(); v < rows.stride; v += item_stride()) {
    float sum = adds ? sums[v] : 0.F;
#pragma unroll 8
    for (std::size_t n = 0; n < rows.rows; ++n) sum += load_one(slopes, n * slope_stride + v);
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

std::size_t slope_stride(const Machine& machine, const LogitRows& rows) {
  return rows.stride * sizeof(float) / Layout{machine.precision}.element_bytes().count();
}

void judge_rows(const Machine& machine, const LogitRows& rows, const std::int32_t* labels,
                const float* share, float smoothing, TokenLoss* losses) {
  const Grid grid{.blocks = dim3{static_cast<unsigned>(std::min(rows.rows, kMaxBlocks))},
                  .threads = dim3{kJudgeThreads}};
  with_element(machine.precision, [&]<class T>(T) {
    enqueue(machine.stream, grid, judge<T>, rows, labels, share, smoothing, losses);
  });
}

void sum_columns(const Machine& machine, const LogitRows& rows, float* sums, bool adds) {
  with_element(machine.precision, [&]<class T>(T) {
    launch(machine.stream, rows.stride, sum_rows<T>, rows, slope_stride(machine, rows), sums, adds);
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
