#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/exponential.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {
namespace {

// Logits that are there at once take about so much memory.
constexpr std::size_t kChunkFloats = (48ULL << 20U) / sizeof(float);

// What one token adds to the result.
struct Sample {
  float loss;
  float correct;
};

// How tokens are cut into chunks, all about as large.
struct Chunks {
  Chunks(const Layout& layout, const VocabularyGeometry& geometry)
      : rows{layout, geometry.x}, vocabulary{geometry.vocabulary} {
    constexpr std::size_t kLeast = 16;
    const std::size_t most = std::max(kChunkFloats / vocabulary, kLeast);
    const std::size_t count = (rows.count + most - 1) / most;
    each = (rows.count + count - 1) / count;
  }
  /// Of the logits.
  [[nodiscard]] um::Bytes bytes() const { return float_bytes(each * vocabulary); }

  TokenRows rows;
  std::size_t vocabulary;
  std::size_t each;  // tokens of a chunk, but the last
};

// A token's logits.
struct Logits {
  float* numbers;
  std::size_t count;

  [[nodiscard]] float largest() const {
    float most = numbers[0];
    for (std::size_t v = 1; v < count; ++v) most = numbers[v] > most ? numbers[v] : most;
    return most;
  }
  // Sum of exp(logit - largest), in double: its rounding must not show in the mean loss.
  [[nodiscard]] double exponential_sum(float most) const {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t v = 0; v < count; ++v) {
      sum += static_cast<double>(exponential(numbers[v] - most));
    }
    return sum;
  }
  // -log softmax = log sum exp(logit - largest) + largest - logit[label]; the first of equal logits
  // is the prediction.
  [[nodiscard]] Sample judge(std::int32_t label, float most, double sum) const {
    if (label < 0) return {.loss = 0, .correct = 0};
    const auto truth = static_cast<std::size_t>(label);
    const bool is_first = std::find(numbers, numbers + truth, most) == numbers + truth;
    return {.loss = static_cast<float>(std::log(sum)) + (most - numbers[truth]),
            .correct = numbers[truth] == most && is_first ? 1.F : 0.F};
  }
  // To (softmax - one-hot label) times the label's share of the loss.
  void differentiate(std::int32_t label, float most, double sum, float share) const {
    if (label < 0) {
      std::fill_n(numbers, count, 0.F);
      return;
    }
    const auto scale = static_cast<float>(static_cast<double>(share) / sum);
#pragma omp simd
    for (std::size_t v = 0; v < count; ++v) numbers[v] = exponential(numbers[v] - most) * scale;
    numbers[static_cast<std::size_t>(label)] -= share;
  }
};

template <class Op>
class VocabularyLossKernel final : public HostKernel {
 public:
  VocabularyLossKernel(const Machine& machine, const Op& op)
      : HostKernel{machine, operand_count(op)},
        op_{op},
        chunks_{machine.layout, op.geometry},
        table_{parts_of(machine.layout, op.geometry.table())},
        bias_{parts_of(machine.layout, op.geometry.bias_parameters())} {}

 private:
  static constexpr bool kIsTraining = std::is_same_v<Op, VocabularyLossTrain>;

  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of(op_, arguments.operands);
    const auto* const labels = reinterpret_cast<const std::int32_t*>(operands.in.labels);
    const std::size_t count = chunks_.rows.count;
    um::expects(std::all_of(labels, labels + count,
                            [&](std::int32_t label) {
                              return label < static_cast<std::int32_t>(chunks_.vocabulary);
                            }),
                "labels are in the vocabulary");
    const float share = share_of(labels, *arguments.context);
    auto* const samples = reinterpret_cast<Sample*>(arguments.workspace + chunks_.bytes().count());
    for (std::size_t first = 0; first < count; first += chunks_.each) {
      compute_chunk(operands, {.first = first, .count = std::min(chunks_.each, count - first)},
                    labels, share, floats(arguments.workspace), samples);
    }
    write_result(samples, kIsTraining ? share : 1.F, floats(operands.out.result));
    if constexpr (kIsTraining) {
      zero_gaps(table_, floats(operands.out.dtable));
      if (op_.geometry.bias) zero_gaps(bias_, floats(operands.out.dbias));
    }
  }

  struct Chunk {
    std::size_t first;
    std::size_t count;
  };

  void compute_chunk(const Operands<Op>& operands, const Chunk& chunk, const std::int32_t* labels,
                     float share, float* logits, Sample* samples) const {
    const std::size_t stride = chunks_.rows.stride;
    const std::size_t vocabulary = chunks_.vocabulary;
    const Matrix x{.numbers = floats(operands.in.x) + chunk.first * stride, .stride = stride};
    const Matrix table{.numbers = floats(operands.in.table), .stride = stride};
    multiply({.rows = chunk.count, .columns = vocabulary, .inner = stride}, x,
             {.numbers = table.numbers, .stride = stride, .transposed = true}, logits, vocabulary,
             1.F, false);
    const float* const bias = op_.geometry.bias ? floats(operands.in.bias) : nullptr;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const Logits own{.numbers = logits + i * vocabulary, .count = vocabulary};
      for (std::size_t v = 0; bias != nullptr && v < vocabulary; ++v) own.numbers[v] += bias[v];
      const std::int32_t label = labels[chunk.first + i];
      const float most = own.largest();
      const double sum = own.exponential_sum(most);
      samples[chunk.first + i] = own.judge(label, most, sum);
      if constexpr (kIsTraining) own.differentiate(label, most, sum, share);
    }
    if constexpr (kIsTraining) {
      const bool adds = chunk.first > 0;
      multiply({.rows = vocabulary, .columns = stride, .inner = chunk.count},
               {.numbers = logits, .stride = vocabulary, .transposed = true}, x,
               floats(operands.out.dtable), stride, 1.F, adds);
      if (op_.geometry.bias) add_biases(logits, chunk.count, floats(operands.out.dbias), adds);
      // Last: it may go over x.
      multiply({.rows = chunk.count, .columns = stride, .inner = vocabulary},
               {.numbers = logits, .stride = vocabulary}, table,
               floats(operands.out.dx) + chunk.first * stride, stride, 1.F, false);
    }
  }

  void add_biases(const float* slopes, std::size_t count, float* dbias, bool adds) const {
    constexpr std::size_t kColumns = 1024;
    const std::size_t vocabulary = chunks_.vocabulary;
#pragma omp parallel for schedule(static)
    for (std::size_t begin = 0; begin < vocabulary; begin += kColumns) {
      const std::size_t end = std::min(begin + kColumns, vocabulary);
      if (!adds) std::fill(dbias + begin, dbias + end, 0.F);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t v = begin; v < end; ++v) dbias[v] += slopes[i * vocabulary + v];
      }
    }
  }

  // What a token counts for in the loss.
  [[nodiscard]] float share_of(const std::int32_t* labels, const StepContext& context) const {
    const auto here = std::count_if(labels, labels + chunks_.rows.count,
                                    [](std::int32_t label) { return label >= 0; });
    const std::size_t count = context.counted_labels.value_or(static_cast<std::size_t>(here));
    return count > 0 ? 1.F / static_cast<float>(count) : 0.F;
  }

  // In the order of the tokens, whichever thread made them.
  void write_result(const Sample* samples, float scale, float* result) const {
    double loss = 0;
    double correct = 0;
    for (std::size_t i = 0; i < chunks_.rows.count; ++i) {
      loss += static_cast<double>(samples[i].loss);
      correct += static_cast<double>(samples[i].correct);
    }
    result[0] = static_cast<float>(loss * static_cast<double>(scale));
    result[1] = static_cast<float>(correct);
  }

  Op op_;
  Chunks chunks_;
  ParameterParts table_;
  ParameterParts bias_;
};

um::Bytes workspace(const Machine& machine, const VocabularyGeometry& geometry) {
  const Chunks chunks{machine.layout, geometry};
  return chunks.bytes() + um::Bytes{chunks.rows.count * sizeof(Sample)};
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLossTrain& op) {
  return std::make_unique<VocabularyLossKernel<VocabularyLossTrain>>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLossEvaluate& op) {
  return std::make_unique<VocabularyLossKernel<VocabularyLossEvaluate>>(machine, op);
}

um::Bytes workspace_of(const Machine& machine, const VocabularyLossTrain& op) {
  return workspace(machine, op.geometry);
}
um::Bytes workspace_of(const Machine& machine, const VocabularyLossEvaluate& op) {
  return workspace(machine, op.geometry);
}

}  // namespace spillway::host
