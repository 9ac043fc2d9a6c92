#include <cstdint>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/softmax_cross_entropy.cuh"
#include "src/cuda/layout/step_numbers.h"

namespace spillway::cuda {
namespace {

// The contribution of one sample (a position of an image) to the result.
struct Sample {
  float loss;
  float correct;
};

// The workspace: a sample's weight in the mean, then the samples.
struct Workspace {
  explicit Workspace(std::byte* begin)
      : share{reinterpret_cast<float*>(begin)},
        samples{reinterpret_cast<Sample*>(begin + kSamples)} {}

  static um::Bytes bytes(std::size_t count) { return um::Bytes{kSamples + count * sizeof(Sample)}; }

  static constexpr std::size_t kSamples = 16;
  float* share;
  Sample* samples;
};

// One row per position, with adjacent channels.
struct Rows {
  std::size_t count;
  int classes;
  int stride;  // classes with padding
};

// Labels of all positions, plain or mixed.
struct Labels {
  const std::int32_t* numbers;
  bool are_mixed;

  [[nodiscard]] __host__ __device__ int each() const {
    return are_mixed ? static_cast<int>(kMixedLabelNumbers) : 1;
  }
  // A plain label is returned as both labels, the second with no part.
  [[nodiscard]] __device__ MixedLabel at(std::size_t n) const {
    if (are_mixed) return reinterpret_cast<const MixedLabel*>(numbers)[n];
    return {.first = numbers[n], .second = numbers[n], .part = 0.F};
  }
};

// Mixes the losses of both labels by their parts. The prediction is correct if it is the label with
// the larger part.
template <class Logit>
__device__ Sample judged_mixed(const Logit& logit, int classes, const MixedLabel& label,
                               Largest largest, double sum) {
  const Sample first = judged<Sample>(logit, classes, label.first, largest, sum);
  if (label.first < 0) return first;
  const Sample second = judged<Sample>(logit, classes, label.second, largest, sum);
  return {.loss = (1.F - label.part) * first.loss + label.part * second.loss,
          .correct = label.part > 0.5F ? second.correct : first.correct};
}

// Mixes taken() of both labels by their parts.
__device__ float taken_mixed(int c, const MixedLabel& label, float share, float smoothing,
                             int classes) {
  const float each = share * smoothing / static_cast<float>(classes);
  const float first = c == label.first ? 1.F - label.part : 0.F;
  const float second = c == label.second ? label.part : 0.F;
  return each + share * (1.F - smoothing) * (first + second);
}

// Judges a prediction in an evaluation; called by a whole warp.
template <class Logit>
__device__ void judge_prediction(const Logit& logit, int classes, std::int32_t label,
                                 Largest largest, double sum, JudgedSample* result) {
  const int rank = rank_of(logit, classes, label);
  if (threadIdx.x % kWarp > 0) return;
  *result = {.prediction = static_cast<float>(largest.at),
             .probability = static_cast<float>(1 / sum),
             .rank = static_cast<float>(rank)};
}

// Each warp handles one row at a time. With kTrains, also writes (softmax - one-hot label) /
// samples, possibly over the logits.
template <class T, bool kTrains>
__global__ void softmax_rows(const T* logits, Labels labels, Rows rows, const float* share,
                             float smoothing, Sample* samples, T* dlogits,
                             JudgedSample* judged_samples, float* given_logits) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (std::size_t n = first_item() / kWarp; n < rows.count; n += item_stride() / kWarp) {
    const T* const row = logits + n * rows.stride;
    const MixedLabel mixed = labels.at(n);
    const std::int32_t label = mixed.first;
    const auto logit = [row](int c) { return load_one(row, c); };
    const Largest largest = largest_of(logit, rows.classes);
    const double sum = exponential_sum(logit, rows.classes, largest.logit);
    if (lane == 0) {
      samples[n] = labels.are_mixed ? judged_mixed(logit, rows.classes, mixed, largest, sum)
                                    : judged<Sample>(logit, rows.classes, label, largest, sum);
    }
    if (!kTrains) {
      if (judged_samples == nullptr) continue;
      judge_prediction(logit, rows.classes, label, largest, sum, judged_samples + n);
      if (given_logits == nullptr) continue;
      for (int c = lane; c < rows.classes; c += kWarp) {
        given_logits[n * static_cast<std::size_t>(rows.classes) + c] = logit(c);
      }
      continue;
    }
    if (smoothing > 0 && label >= 0) {
      const double logits_of_row = logit_sum(logit, rows.classes);
      if (lane == 0) {
        samples[n].loss =
            smoothed(samples[n].loss, smoothing, rows.classes, largest.logit, sum, logits_of_row);
      }
    }
    __syncwarp();  // lane 0 has read the label's logit, which another lane overwrites
    const float part = *share;
    const float scale = label < 0 ? 0.F : static_cast<float>(static_cast<double>(part) / sum);
    for (int c = lane; c < rows.stride; c += kWarp) {
      float gradient = 0.F;
      if (c < rows.classes) {
        gradient = expf(load_one(row, c) - largest.logit) * scale;
        if (label >= 0) {
          gradient -= labels.are_mixed ? taken_mixed(c, mixed, part, smoothing, rows.classes)
                                       : taken(c == label, part, smoothing, rows.classes);
        }
      }
      store_one(dlogits + n * rows.stride, c, gradient);
    }
  }
}

std::size_t positions(const TensorShape& x) { return x.batch * x.image.height * x.image.width; }

Rows logit_rows(const TensorShape& x) {
  return {.count = positions(x),
          .classes = static_cast<int>(x.image.channels),
          .stride = static_cast<int>(Layout::padded(x.image.channels))};
}

// Also computes dlogits in training. If a result is read, it is the same block as the written one.
template <class Op>
std::unique_ptr<Kernel> make(const Machine& machine, const Op& op) {
  auto whole = machine.numbers->add([](const StepContext& context) {
    return static_cast<std::uint64_t>(context.counted_labels.value_or(0));
  });
  auto judge = [machine, op, rows = logit_rows(op.x), whole = std::move(whole)](
                   const auto& operands, const auto& arguments) {
    constexpr bool kIsTraining = std::is_same_v<Op, SoftmaxCrossEntropyTrain>;
    const Workspace space{arguments.workspace};
    Labels labels{.numbers = tensor<const std::int32_t>(operands.in.labels), .are_mixed = false};
    std::byte* dlogits = nullptr;
    bool accumulates = false;
    float smoothing = 0;
    JudgedSample* judged_samples = nullptr;
    float* given_logits = nullptr;
    if constexpr (kIsTraining) {
      dlogits = operands.out.dlogits;
      accumulates = op.accumulates;
      smoothing = op.smoothing;
      labels.are_mixed = op.mixes;
      launch(machine.stream, 1, compute_share, labels.numbers, rows.count, labels.each(),
             whole.get(), op.weight, space.share);
    } else if (op.judged_samples() > 0) {
      float* const behind = tensor<float>(operands.out.result) + 2;
      judged_samples = reinterpret_cast<JudgedSample*>(behind);
      if (op.gives_logits) given_logits = behind + op.judged_floats();
    }
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, rows.count * kWarp, softmax_rows<T, kIsTraining>,
             tensor<const T>(operands.in.logits), labels, rows, space.share, smoothing,
             space.samples, tensor<T>(dlogits), judged_samples, given_logits);
    });
    launch(machine.stream, 1, write_result<Sample>, space.samples, rows.count,
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
