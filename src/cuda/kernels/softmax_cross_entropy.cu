#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/step_numbers.h"

namespace spillway::cuda {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFF;

// What one sample, a position of an image, adds to the result.
struct Sample {
  float loss;
  float correct;
};

// The workspace: what a sample counts for in the mean, then the samples.
struct Workspace {
  explicit Workspace(std::byte* begin)
      : share{reinterpret_cast<float*>(begin)},
        samples{reinterpret_cast<Sample*>(begin + kSamples)} {}

  static um::Bytes bytes(std::size_t count) { return um::Bytes{kSamples + count * sizeof(Sample)}; }

  static constexpr std::size_t kSamples = 16;
  float* share;
  Sample* samples;
};

// A row for each position: its channels lie side by side.
struct Rows {
  std::size_t count;
  int classes;
  int stride;  // classes and padding
};

// weight / (samples whose label is not negative), by one block; where the step says how many they
// are in the batch of which these are a part, weight / that.
__global__ void compute_share(const std::int32_t* labels, std::size_t count,
                              const std::uint64_t* step_whole, float weight, float* share) {
  int valid = 0;
  for (std::size_t begin = 0; begin < count; begin += blockDim.x) {
    const std::size_t n = begin + threadIdx.x;
    valid += __syncthreads_count(n < count && labels[n] >= 0 ? 1 : 0);
  }
  if (threadIdx.x > 0) return;
  const std::uint64_t whole = *step_whole;
  const auto all = whole > 0 ? whole : static_cast<std::uint64_t>(valid);
  *share = all > 0 ? weight / static_cast<float>(all) : 0.F;
}

struct Largest {
  float logit;
  int at;  // the first of equal ones
};

// Of a row, by a warp; each lane returns it.
template <class T>
__device__ Largest largest_of(const T* row, int classes, int lane) {
  Largest largest{.logit = -INFINITY, .at = INT_MAX};
  for (int c = lane; c < classes; c += kWarp) {
    const float logit = load_one(row, c);
    if (logit > largest.logit) largest = {.logit = logit, .at = c};
  }
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    const float logit = __shfl_xor_sync(kAllLanes, largest.logit, distance);
    const int at = __shfl_xor_sync(kAllLanes, largest.at, distance);
    if (logit > largest.logit || (logit == largest.logit && at < largest.at)) {
      largest = {.logit = logit, .at = at};
    }
  }
  return largest;
}

// Sum of exp(logit - largest), in double: its rounding must not show in the mean loss. Each lane
// gets the same bits, since a + b = b + a.
template <class T>
__device__ double exponential_sum(const T* row, int classes, float maximum, int lane) {
  double sum = 0;
  for (int c = lane; c < classes; c += kWarp) {
    sum += static_cast<double>(expf(load_one(row, c) - maximum));
  }
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  return sum;
}

// -log softmax = log sum exp(logit - largest) + largest - logit[label]. A label that is no class
// makes the loss a NaN: nothing on the device can complain.
template <class T>
__device__ Sample judge(const T* row, const Rows& rows, std::int32_t label, Largest largest,
                        double sum) {
  if (label < 0) return {.loss = 0.F, .correct = 0.F};
  if (label >= rows.classes) return {.loss = NAN, .correct = 0.F};
  return {.loss = static_cast<float>(log(sum)) + (largest.logit - load_one(row, label)),
          .correct = largest.at == label ? 1.F : 0.F};
}

// A warp takes a row at a time. With kTrains, it also makes (softmax - one-hot label) / samples,
// which may go over the logits.
template <class T, bool kTrains>
__global__ void softmax_rows(const T* logits, const std::int32_t* labels, Rows rows,
                             const float* share, Sample* samples, T* dlogits) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (std::size_t n = first_item() / kWarp; n < rows.count; n += item_stride() / kWarp) {
    const T* const row = logits + n * rows.stride;
    const std::int32_t label = labels[n];
    const Largest largest = largest_of(row, rows.classes, lane);
    const double sum = exponential_sum(row, rows.classes, largest.logit, lane);
    if (lane == 0) samples[n] = judge(row, rows, label, largest, sum);
    if (!kTrains) continue;
    __syncwarp();  // lane 0 has read the label's logit, which another lane writes over
    const float part = *share;
    const float scale = label < 0 ? 0.F : static_cast<float>(static_cast<double>(part) / sum);
    for (int c = lane; c < rows.stride; c += kWarp) {
      float gradient = 0.F;
      if (c < rows.classes) {
        gradient = expf(load_one(row, c) - largest.logit) * scale;
        if (c == label) gradient -= part;
      }
      store_one(dlogits + n * rows.stride, c, gradient);
    }
  }
}

// Sums the samples, always in the same order, by one block of kThreads.
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

std::size_t positions(const TensorShape& x) { return x.batch * x.image.height * x.image.width; }

Rows rows_of(const TensorShape& x) {
  return {.count = positions(x),
          .classes = static_cast<int>(x.image.channels),
          .stride = static_cast<int>(Layout::padded(x.image.channels))};
}

// dlogits when training. A result that is read and the one that is written are one block.
template <class Op>
std::unique_ptr<Kernel> make(const Machine& machine, const Op& op) {
  auto whole = machine.numbers->add([](const StepContext& context) {
    return static_cast<std::uint64_t>(context.counted_labels.value_or(0));
  });
  auto judge = [machine, op, rows = rows_of(op.x), whole = std::move(whole)](
                   const auto& operands, const auto& arguments) {
    constexpr bool kIsTraining = std::is_same_v<Op, SoftmaxCrossEntropyTrain>;
    const Workspace space{arguments.workspace};
    const auto* const labels = tensor<const std::int32_t>(operands.in.labels);
    std::byte* dlogits = nullptr;
    bool accumulates = false;
    if constexpr (kIsTraining) {
      dlogits = operands.out.dlogits;
      accumulates = op.accumulates;
      launch(machine.stream, 1, compute_share, labels, rows.count, whole.get(), op.weight,
             space.share);
    }
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, rows.count * kWarp, softmax_rows<T, kIsTraining>,
             tensor<const T>(operands.in.logits), labels, rows, space.share, space.samples,
             tensor<T>(dlogits));
    });
    launch(machine.stream, 1, write_result, space.samples, rows.count,
           kIsTraining ? space.share : nullptr, accumulates, tensor<float>(operands.out.result));
  };
  return kernel_of(op, std::move(judge));
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SoftmaxCrossEntropyTrain& op) {
  return make(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SoftmaxCrossEntropyEvaluate& op) {
  return make(machine, op);
}

um::Bytes workspace_of(const Machine& /*machine*/, const SoftmaxCrossEntropyTrain& op) {
  return Workspace::bytes(positions(op.x));
}
um::Bytes workspace_of(const Machine& /*machine*/, const SoftmaxCrossEntropyEvaluate& op) {
  return Workspace::bytes(positions(op.x));
}

}  // namespace spillway::cuda
