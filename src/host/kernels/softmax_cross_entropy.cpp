#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "src/host/kernels/kernels.h"
#include "src/host/layout/threads.h"

namespace spillway::host {
namespace {

// The contribution of one sample (a position of an image) to the result.
struct Sample {
  float loss;
  float correct;
};

using Row = std::span<float>;  // logits of a sample

// Memory layout of the samples' channels.
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

  std::size_t count;     // per batch
  std::size_t pixels;    // per image
  std::size_t channels;  // padding included
  std::size_t lanes;     // adjacent channels
};

// Labels of all positions, plain or mixed.
class Labels {
 public:
  Labels(const std::byte* begin, std::size_t count, bool are_mixed)
      : begin_{begin}, count_{count}, are_mixed_{are_mixed} {}

  [[nodiscard]] bool are_mixed() const { return are_mixed_; }
  // A plain label is returned as both labels, the second with no part.
  [[nodiscard]] MixedLabel operator[](std::size_t n) const {
    MixedLabel label{};
    if (are_mixed_) {
      std::memcpy(&label, begin_ + n * sizeof(label), sizeof(label));
    } else {
      std::memcpy(&label.first, begin_ + n * sizeof(label.first), sizeof(label.first));
      label.second = label.first;
    }
    return label;
  }
  [[nodiscard]] bool are_below(std::size_t classes) const {
    const auto end = static_cast<std::int32_t>(classes);
    for (std::size_t n = 0; n < count_; ++n) {
      const MixedLabel label = (*this)[n];
      if (label.first >= end || label.second >= end) return false;
      if (are_mixed_ && label.first >= 0 && label.second < 0) return false;
    }
    return true;
  }
  // Returns the number of labels that are not negative.
  [[nodiscard]] std::size_t counted() const {
    std::size_t counted = 0;
    for (std::size_t n = 0; n < count_; ++n) counted += (*this)[n].first >= 0 ? 1 : 0;
    return counted;
  }

 private:
  const std::byte* begin_;
  std::size_t count_;
  bool are_mixed_;
};

float largest(Row row) { return *std::max_element(row.begin(), row.end()); }

// Returns the sum of exp(logit - largest), in double, so that its rounding does not show in the
// mean loss.
double exponential_sum(Row row, float maximum) {
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - maximum);
  return sum;
}

// The loss is -log softmax = log sum exp(logit - largest) + largest - logit[label]. The prediction
// is the first of equal largest logits.
Sample judge(Row row, std::int32_t label, float maximum, double sum) {
  if (label < 0) return {.loss = 0, .correct = 0};
  const auto truth = static_cast<std::size_t>(label);
  const auto prediction = std::max_element(row.begin(), row.end()) - row.begin();
  return {.loss = static_cast<float>(std::log(sum)) + (maximum - row[truth]),
          .correct = prediction == label ? 1.F : 0.F};
}

Sample judge_mixed(Row row, const MixedLabel& label, float maximum, double sum) {
  const Sample first = judge(row, label.first, maximum, sum);
  if (label.first < 0) return first;
  const Sample second = judge(row, label.second, maximum, sum);
  return {.loss = (1 - label.part) * first.loss + label.part * second.loss,
          .correct = label.part > 0.5F ? second.correct : first.correct};
}

// Mixes the loss `own` with the mean over all classes; a class has loss log sum + maximum - logit.
float smoothed(float own, Row row, float maximum, double sum, float smoothing) {
  double logits = 0;
  for (const float logit : row) logits += static_cast<double>(logit);
  const double mean =
      std::log(sum) + static_cast<double>(maximum) - logits / static_cast<double>(row.size());
  const auto part = static_cast<double>(smoothing);
  return static_cast<float>((1 - part) * static_cast<double>(own) + part * mean);
}

// `sum` is the result of exponential_sum().
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

// Also computes dlogits in training. If a result is read, it is the same block as the written one.
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
    const Labels labels{operands.in.labels, positions_.count, mixes()};
    um::expects(labels.are_below(classes_), "labels are classes");
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
          const MixedLabel label = labels[n];
          samples[n] = labels.are_mixed() ? judge_mixed(row, label, maximum, sum)
                                          : judge(row, label.first, maximum, sum);
          if constexpr (kIsTraining) {
            if (op_.smoothing > 0 && label.first >= 0) {
              samples[n].loss = smoothed(samples[n].loss, row, maximum, sum, op_.smoothing);
            }
            differentiate(label, maximum, sum, share, row);
            put(row, n, elements(operands.out.dlogits));
          } else if (op_.judged_samples() > 0) {
            judged_at(operands.out.result)[n] = judged(row, label.first, sum);
            if (op_.gives_logits) std::ranges::copy(row, logits_at(operands.out.result, n));
          }
        }
      }
    });
    write_result(samples, kIsTraining ? share : 1.F, floats(operands.out.result));
  }

  [[nodiscard]] bool mixes() const {
    if constexpr (kIsTraining) return op_.mixes;
    return false;
  }

  // Returns the weight of a position in the loss.
  [[nodiscard]] float share_of(const Labels& labels, const StepContext& context) const {
    const std::size_t count = context.counted_labels.value_or(labels.counted());
    float weight = 1;
    if constexpr (kIsTraining) weight = op_.weight;
    return count > 0 ? weight / static_cast<float>(count) : 0.F;
  }

  template <class T>
  void take(const T* logits, std::size_t position, Row row) const {
    for (std::size_t c = 0; c < classes_; ++c) row[c] = logits[positions_.place(position, c)];
  }

  // Writes a gradient, possibly over the logits, which have been read before.
  template <class T>
  void put(Row row, std::size_t position, T* gradient) const {
    for (std::size_t c = 0; c < positions_.channels; ++c) {
      gradient[positions_.place(position, c)] = c < classes_ ? row[c] : 0.F;
    }
  }

  // Judged samples follow the two floats of the total.
  static JudgedSample* judged_at(std::byte* result) {
    return reinterpret_cast<JudgedSample*>(floats(result) + 2);
  }
  // Logits of sample `n` follow all judged samples.
  float* logits_at(std::byte* result, std::size_t n) const {
    return floats(result) + 2 + op_.judged_floats() + n * classes_;
  }

  // Replaces logits by (softmax - (1 - smoothing) one-hot label - smoothing / classes) / samples.
  void differentiate(const MixedLabel& label, float maximum, double sum, float share,
                     Row row) const {
    const bool counts = label.first >= 0;
    const auto scale = counts ? static_cast<float>(static_cast<double>(share) / sum) : 0.F;
    const float each = counts ? share * op_.smoothing / static_cast<float>(row.size()) : 0.F;
    for (float& value : row) value = std::exp(value - maximum) * scale - each;
    if (!counts) return;
    float& first = row[static_cast<std::size_t>(label.first)];
    if (!op_.mixes) {
      first -= share * (1 - op_.smoothing);
      return;
    }
    first -= share * (1 - op_.smoothing) * (1 - label.part);
    row[static_cast<std::size_t>(label.second)] -= share * (1 - op_.smoothing) * label.part;
  }

  // Sums in sample order, whichever thread computed the terms. Reads `result` if it accumulates.
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
