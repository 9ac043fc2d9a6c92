#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/host/kernels.h"

namespace spillway::host {
namespace {

// What one sample adds to the result.
struct Sample {
  float loss;
  float correct;
};

struct Row {
  const float* logits;
  std::size_t classes;
};

float largest(Row row) { return *std::max_element(row.logits, row.logits + row.classes); }

// Sum of exp(logit - largest), in double: its rounding must not show in the mean loss.
double exponential_sum(Row row, float maximum) {
  double sum = 0;
  for (std::size_t c = 0; c < row.classes; ++c) sum += std::exp(row.logits[c] - maximum);
  return sum;
}

// -log softmax = log sum exp(logit - largest) + largest - logit[label]; the first of equal logits
// is the prediction.
Sample judge(Row row, std::int32_t label, float maximum, double sum) {
  if (label < 0) return {.loss = 0, .correct = 0};
  const auto truth = static_cast<std::size_t>(label);
  const auto prediction = std::max_element(row.logits, row.logits + row.classes) - row.logits;
  return {.loss = static_cast<float>(std::log(sum)) + (maximum - row.logits[truth]),
          .correct = prediction == label ? 1.F : 0.F};
}

// logits, labels -> result, and dlogits when training.
class SoftmaxCrossEntropyKernel final : public HostKernel {
 public:
  SoftmaxCrossEntropyKernel(const Machine& machine, const TensorShape& x, bool is_training)
      : HostKernel{machine, is_training ? 4U : 3U},
        batch_{x.batch},
        classes_{x.image.channels},
        stride_{machine.layout.padded(x.image).elements()},
        is_training_{is_training} {
    um::expects(x.image.height == 1 && x.image.width == 1, "logits are vectors");
  }

 private:
  void compute(const KernelArguments& arguments) override {
    const float* const logits = floats(arguments, 0);
    const auto* const labels = reinterpret_cast<const std::int32_t*>(arguments.operands[1]);
    auto* const samples = reinterpret_cast<Sample*>(arguments.workspace);
    const auto is_class = [&](std::int32_t label) {
      return label < static_cast<std::int32_t>(classes_);
    };
    um::expects(std::all_of(labels, labels + batch_, is_class), "labels are classes");
    const float share = share_of(labels, *arguments.context);
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < batch_; ++n) {
      const Row row{.logits = logits + n * stride_, .classes = classes_};
      const float maximum = largest(row);
      const double sum = exponential_sum(row, maximum);
      samples[n] = judge(row, labels[n], maximum, sum);
      if (is_training_) {
        differentiate(row, labels[n], maximum, sum, share, floats(arguments, 3) + n * stride_);
      }
    }
    write_result(samples, is_training_ ? share : 1.F, floats(arguments, 2));
  }

  // What a sample counts for in the mean.
  [[nodiscard]] float share_of(const std::int32_t* labels, const StepContext& context) const {
    const auto here =
        std::count_if(labels, labels + batch_, [](std::int32_t label) { return label >= 0; });
    const std::size_t count = context.labelled_samples.value_or(static_cast<std::size_t>(here));
    return count > 0 ? 1.F / static_cast<float>(count) : 0.F;
  }

  // (softmax - one-hot label) / samples, which may go over the logits.
  void differentiate(Row row, std::int32_t label, float maximum, double sum, float share,
                     float* gradient) const {
    const auto scale = label < 0 ? 0.F : static_cast<float>(static_cast<double>(share) / sum);
    for (std::size_t c = 0; c < row.classes; ++c) {
      gradient[c] = std::exp(row.logits[c] - maximum) * scale;
    }
    if (label >= 0) gradient[label] -= share;
    std::fill(gradient + row.classes, gradient + stride_, 0.F);
  }

  // In the order of the samples, whichever thread made them.
  void write_result(const Sample* samples, float scale, float* result) const {
    double loss = 0;
    float correct = 0;
    for (std::size_t n = 0; n < batch_; ++n) {
      loss += static_cast<double>(samples[n].loss);
      correct += samples[n].correct;
    }
    result[0] = static_cast<float>(loss * static_cast<double>(scale));
    result[1] = correct;
  }

  std::size_t batch_;
  std::size_t classes_;
  std::size_t stride_;
  bool is_training_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SoftmaxCrossEntropyTrain& op) {
  return std::make_unique<SoftmaxCrossEntropyKernel>(machine, op.x, /*is_training=*/true);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SoftmaxCrossEntropyEvaluate& op) {
  return std::make_unique<SoftmaxCrossEntropyKernel>(machine, op.x, /*is_training=*/false);
}

um::Bytes workspace_of(const Machine& /*machine*/, const SoftmaxCrossEntropyTrain& op) {
  return um::Bytes{op.x.batch * sizeof(Sample)};
}
um::Bytes workspace_of(const Machine& /*machine*/, const SoftmaxCrossEntropyEvaluate& op) {
  return um::Bytes{op.x.batch * sizeof(Sample)};
}

}  // namespace spillway::host
