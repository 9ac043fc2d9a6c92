#pragma once

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>

#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {

/// Computes weight / count with one block. The count is *step_whole, the labels of the whole batch,
/// or if that is zero the labels here that are not negative. A label is the first of `each`
/// numbers.
static __global__ void compute_share(const std::int32_t* labels, std::size_t count, int each,
                                     const std::uint64_t* step_whole, float weight, float* share) {
  int valid = 0;
  for (std::size_t begin = 0; begin < count; begin += blockDim.x) {
    const std::size_t n = begin + threadIdx.x;
    valid += __syncthreads_count(n < count && labels[n * each] >= 0 ? 1 : 0);
  }
  if (threadIdx.x > 0) return;
  const std::uint64_t whole = *step_whole;
  const auto all = whole > 0 ? whole : static_cast<std::uint64_t>(valid);
  *share = all > 0 ? weight / static_cast<float>(all) : 0.F;
}

/// The largest logit of a row.
struct Largest {
  float logit;
  int at;  ///< the first of equal ones
};

/// Returns the largest of logit(0), logit(1), ... on each lane; called by a whole warp.
template <class Logit>
__device__ Largest largest_of(const Logit& logit, int classes) {
  Largest largest{.logit = -INFINITY, .at = INT_MAX};
  for (int c = static_cast<int>(threadIdx.x % kWarp); c < classes; c += kWarp) {
    const float own = logit(c);
    if (own > largest.logit) largest = {.logit = own, .at = c};
  }
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, largest.logit, distance);
    const int at = __shfl_xor_sync(kAllLanes, largest.at, distance);
    if (other > largest.logit || (other == largest.logit && at < largest.at)) {
      largest = {.logit = other, .at = at};
    }
  }
  return largest;
}

/// Returns the sum of exp(logit - largest), in double, so that its rounding does not show in the
/// mean loss. Each lane gets the same bits.
template <class Logit>
__device__ double exponential_sum(const Logit& logit, int classes, float maximum) {
  double sum = 0;
  for (int c = static_cast<int>(threadIdx.x % kWarp); c < classes; c += kWarp) {
    sum += static_cast<double>(expf(logit(c) - maximum));
  }
  return warp_sum(sum);
}

/// Returns one sample's contribution: -log softmax = log sum exp(logit - largest) + largest -
/// logit[label]. An invalid label makes the loss a NaN, since device code cannot report errors.
template <class Sample, class Logit>
__device__ Sample judged(const Logit& logit, int classes, std::int32_t label, Largest largest,
                         double sum) {
  if (label < 0) return {.loss = 0.F, .correct = 0.F};
  if (label >= classes) return {.loss = NAN, .correct = 0.F};
  return {.loss = static_cast<float>(log(sum)) + (largest.logit - logit(label)),
          .correct = largest.at == label ? 1.F : 0.F};
}

/// Returns the sum of the logits, in double. Each lane gets the same bits.
template <class Logit>
__device__ double logit_sum(const Logit& logit, int classes) {
  double sum = 0;
  for (int c = static_cast<int>(threadIdx.x % kWarp); c < classes; c += kWarp) {
    sum += static_cast<double>(logit(c));
  }
  return warp_sum(sum);
}

/// Mixes the label's loss, `own`, with the mean over all classes. `sum` comes from
/// exponential_sum(), `logits` from logit_sum().
static __device__ float smoothed(float own, float smoothing, int classes, float maximum, double sum,
                                 double logits) {
  const double mean = log(sum) + static_cast<double>(maximum) - logits / classes;
  const auto part = static_cast<double>(smoothing);
  return static_cast<float>((1 - part) * static_cast<double>(own) + part * mean);
}

/// Returns what is subtracted from a class's softmax times share: its part of the label.
static __device__ float taken(bool is_label, float share, float smoothing, int classes) {
  const float each = share * smoothing / static_cast<float>(classes);
  return is_label ? each + share * (1 - smoothing) : each;
}

/// Returns the number of classes before the label's in the order of logits; all without a label.
template <class Logit>
__device__ int rank_of(const Logit& logit, int classes, std::int32_t label) {
  if (label < 0 || label >= classes) return classes;
  const float own = logit(label);
  int before = 0;
  for (int c = static_cast<int>(threadIdx.x % kWarp); c < classes; c += kWarp) {
    const float other = logit(c);
    before += other > own || (other == own && c < label) ? 1 : 0;
  }
  return warp_sum(before);
}

/// Sums the samples, always in the same order, with one block of kThreads. `share` may be null.
template <class Sample>
__global__ void write_result(const Sample* samples, std::size_t count, const float* share,
                             bool accumulates, float* result) {
  __shared__ double losses[kThreads];
  __shared__ float corrects[kThreads];
  double loss = 0;
  float correct = 0.F;
  for (std::size_t n = threadIdx.x; n < count; n += kThreads) {
    loss += static_cast<double>(samples[n].loss);
    correct += samples[n].correct;
  }
  losses[threadIdx.x] = loss;
  corrects[threadIdx.x] = correct;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      losses[threadIdx.x] += losses[threadIdx.x + half];
      corrects[threadIdx.x] += corrects[threadIdx.x + half];
    }
  }
  if (threadIdx.x > 0) return;
  const double scale = share == nullptr ? 1.0 : static_cast<double>(*share);
  const double before = accumulates ? static_cast<double>(result[0]) : 0.0;
  result[0] = static_cast<float>(before + losses[0] * scale);
  result[1] = corrects[0];
}

}  // namespace spillway::cuda
