#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "src/host/kernels/kernels.h"
#include "src/host/layout/thread_floats.h"

namespace spillway::host {
namespace {

// What one sample, a position of an image, adds to the result.
struct Sample {
  float loss;
  float correct;
};

using Row = std::span<float>;  // logits of a sample

// Where the channels of a sample lie.
struct Positions {
  Positions(const Layout& layout, const TensorShape& x)
      : count{x.batch * x.image.height * x.image.width},
        pixels{x.image.height * x.image.width},
        channels{layout.padded(x.image.channels)},
        lanes{layout.lanes(x.image)} {}

  [[nodiscard]] std::size_t place(std::size_t position, std::size_t channel) const {
    const std::size_t strip = position / pixels * (channels / lanes) + channel / lanes;
    return (strip * pixels + position % pixels) * lanes + channel % lanes;
  }

  std::size_t count;     // of the batch
  std::size_t pixels;    // of an image
  std::size_t channels;  // padding included
  std::size_t lanes;     // channels side by side
};

float largest(Row row) { return *std::max_element(row.begin(), row.end()); }

// Sum of exp(logit - largest), in double: its rounding must not show in the mean loss.
double exponential_sum(Row row, float maximum) {
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - maximum);
  return sum;
}

// -log softmax = log sum exp(logit - largest) + largest - logit[label]; the first of equal logits
// is the prediction.
Sample judge(Row row, std::int32_t label, float maximum, double sum) {
  if (label < 0) return {.loss = 0, .correct = 0};
  const auto truth = static_cast<std::size_t>(label);
  const auto prediction = std::max_element(row.begin(), row.end()) - row.begin();
  return {.loss = static_cast<float>(std::log(sum)) + (maximum - row[truth]),
          .correct = prediction == label ? 1.F : 0.F};
}

// The loss of `own` mixed with the mean over all classes, whose loss is log sum + maximum - logit.
float smoothed(float own, Row row, float maximum, double sum, float smoothing) {
  double logits = 0;
  for (const float logit : row) logits += static_cast<double>(logit);
  const double mean =
      std::log(sum) + static_cast<double>(maximum) - logits / static_cast<double>(row.size());
  const auto part = static_cast<double>(smoothing);
  return static_cast<float>((1 - part) * static_cast<double>(own) + part * mean);
}

// `sum` is that of exponential_sum().
JudgedSample judged(Row row, std::int32_t label, double sum) {
  const auto prediction = std::max_element(row.begin(), row.end()) - row.begin();
  std::size_t rank = row.size();
  if (label >= 0) {
    const auto truth = static_cast<std::size_t>(label);
    const auto same = row.begin() + label;
    rank = static_cast<std::size_t>(
        std::count_if(row.begin(), row.end(), [&](float logit) { return logit > row[truth]; }) +
        std::count(row.begin(), same, row[truth]));
  }
  return {.prediction = static_cast<float>(prediction),
          .probability = static_cast<float>(1 / sum),
          .rank = static_cast<float>(rank)};
}

// dlogits when training. A result that is read and the one that is written are one block.
template <class Op>
class SoftmaxCrossEntropyKernel final : public HostKernel {
 public:
  SoftmaxCrossEntropyKernel(const Machine& machine, const Op& op)
      : HostKernel{machine, operand_count(op)},
        op_{op},
        layout_{machine.layout},
        positions_{machine.layout, op.x},
        classes_{op.x.image.channels} {}

 private:
  static constexpr bool kIsTraining = std::is_same_v<Op, SoftmaxCrossEntropyTrain>;

  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of(op_, arguments.operands);
    const auto* const labels = reinterpret_cast<const std::int32_t*>(operands.in.labels);
    const std::int32_t* const end = labels + positions_.count;
    const auto is_class = [&](std::int32_t label) {
      return label < static_cast<std::int32_t>(classes_);
    };
    um::expects(std::all_of(labels, end, is_class), "labels are classes");
    const float share = share_of(labels, *arguments.context);
    auto* const samples = reinterpret_cast<Sample*>(arguments.workspace);
    ThreadFloats rows{classes_};
    with_elements(layout_, [&](auto elements) {
#pragma omp parallel
      {
        const Row row = rows.mine();
#pragma omp for schedule(static)
        for (std::size_t n = 0; n < positions_.count; ++n) {
          take(elements(operands.in.logits), n, row);
          const float maximum = largest(row);
          const double sum = exponential_sum(row, maximum);
          samples[n] = judge(row, labels[n], maximum, sum);
          if constexpr (kIsTraining) {
            if (op_.smoothing > 0 && labels[n] >= 0) {
              samples[n].loss = smoothed(samples[n].loss, row, maximum, sum, op_.smoothing);
            }
            differentiate(labels[n], maximum, sum, share, op_.smoothing, row);
            put(row, n, elements(operands.out.dlogits));
          } else if (op_.judged_samples() > 0) {
            judged_at(operands.out.result)[n] = judged(row, labels[n], sum);
            if (op_.gives_logits) std::ranges::copy(row, logits_at(operands.out.result, n));
          }
        }
      }
    });
    write_result(samples, kIsTraining ? share : 1.F, floats(operands.out.result));
  }

  // What a position counts for in the loss.
  [[nodiscard]] float share_of(const std::int32_t* labels, const StepContext& context) const {
    const auto here = std::count_if(labels, labels + positions_.count,
                                    [](std::int32_t label) { return label >= 0; });
    const std::size_t count = context.counted_labels.value_or(static_cast<std::size_t>(here));
    float weight = 1;
    if constexpr (kIsTraining) weight = op_.weight;
    return count > 0 ? weight / static_cast<float>(count) : 0.F;
  }

  template <class T>
  void take(const T* logits, std::size_t position, Row row) const {
    for (std::size_t c = 0; c < classes_; ++c) row[c] = logits[positions_.place(position, c)];
  }

  // May go over the logits, which have been taken.
  template <class T>
  void put(Row row, std::size_t position, T* gradient) const {
    for (std::size_t c = 0; c < positions_.channels; ++c) {
      gradient[positions_.place(position, c)] = c < classes_ ? row[c] : 0.F;
    }
  }

  // Behind the two floats of all.
  static JudgedSample* judged_at(std::byte* result) {
    return reinterpret_cast<JudgedSample*>(floats(result) + 2);
  }
  // Those of sample `n`, behind what all were judged to be.
  float* logits_at(std::byte* result, std::size_t n) const {
    return floats(result) + 2 + op_.judged_floats() + n * classes_;
  }

  // From logits to (softmax - (1 - smoothing) one-hot label - smoothing / classes) / samples.
  static void differentiate(std::int32_t label, float maximum, double sum, float share,
                            float smoothing, Row row) {
    const auto scale = label < 0 ? 0.F : static_cast<float>(static_cast<double>(share) / sum);
    const float each = label < 0 ? 0.F : share * smoothing / static_cast<float>(row.size());
    for (float& value : row) value = std::exp(value - maximum) * scale - each;
    if (label >= 0) row[static_cast<std::size_t>(label)] -= share * (1 - smoothing);
  }

  // In the order of the samples, whichever thread made them; `result` is read where it accumulates.
  void write_result(const Sample* samples, float scale, float* result) const {
    double loss = 0;
    double correct = 0;
    for (std::size_t n = 0; n < positions_.count; ++n) {
      loss += static_cast<double>(samples[n].loss);
      correct += static_cast<double>(samples[n].correct);
    }
    double before = 0;
    if constexpr (kIsTraining) {
      if (op_.accumulates) before = static_cast<double>(result[0]);
    }
    result[0] = static_cast<float>(before + loss * static_cast<double>(scale));
    result[1] = static_cast<float>(correct);
  }

  Op op_;
  Layout layout_;
  Positions positions_;
  std::size_t classes_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SoftmaxCrossEntropyTrain& op) {
  return std::make_unique<SoftmaxCrossEntropyKernel<SoftmaxCrossEntropyTrain>>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SoftmaxCrossEntropyEvaluate& op) {
  return std::make_unique<SoftmaxCrossEntropyKernel<SoftmaxCrossEntropyEvaluate>>(machine, op);
}

um::Bytes workspace_of(const Machine& machine, const SoftmaxCrossEntropyTrain& op) {
  return um::Bytes{Positions{machine.layout, op.x}.count * sizeof(Sample)};
}
um::Bytes workspace_of(const Machine& machine, const SoftmaxCrossEntropyEvaluate& op) {
  return um::Bytes{Positions{machine.layout, op.x}.count * sizeof(Sample)};
}

}  // namespace spillway::host
