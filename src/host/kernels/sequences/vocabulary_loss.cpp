#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "src/host/layout/host_kernel.h"
#include "src/ops/backend.h"
#include "src/ops/operation.h"
#include "um/machine/wide.h"

namespace spillway::host {
namespace {

/// The contribution of one token to the result of a loss over a vocabulary.
struct TokenLoss {
  float loss;
  float correct;
};

/// How the tokens of a batch are cut into chunks of nearly equal size. Only one chunk's logits
/// exist at a time.
struct LogitChunks {
  LogitChunks(const Layout& layout, const VocabularyGeometry& geometry);

  TokenRows rows;
  std::size_t vocabulary;
  std::size_t each;  ///< tokens per chunk; the last may have fewer
};

/// The products for a chunk: logits only, or also gradients. Table gradients either start a sum
/// or are added to it.
enum class ChunkPart : std::uint8_t { kLogits, kFirstGradients, kAddedGradients };

/// The products for a chunk of `tokens` tokens with the table in the tensors' type. Each call's
/// `scratchpad` has scratchpad() bytes. Requires: no gradients are asked for with kLogits.
class ChunkProducts {
 public:
  ChunkProducts(const Machine& machine, const LogitChunks& chunks, std::size_t tokens,
                ChunkPart part);

  [[nodiscard]] um::Bytes scratchpad() const { return scratchpad_; }

  /// logits = x table^T
  void find_logits(std::byte* x, std::byte* table, std::byte* logits, std::byte* scratchpad);
  /// dtable = dlogits^T x, or dtable += that product
  void find_dtable(std::byte* dlogits, std::byte* x, std::byte* dtable, std::byte* scratchpad);
  /// dx = dlogits table
  void find_dx(std::byte* dlogits, std::byte* table, std::byte* dx, std::byte* scratchpad);

 private:
  Call make(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& c, bool adds);

  um::Bytes scratchpad_{};  // declared first: make() raises it
  Call logits_;
  std::optional<Call> dtable_;
  std::optional<Call> dx_;
};

/// Offsets in the workspace: with bfloat16 the converted table (at 0), then a chunk's logits, the
/// contributions of all tokens, and the products' scratchpad. Each is a multiple of 64 bytes.
struct VocabularyRoom {
  VocabularyRoom(const Machine& machine, const LogitChunks& chunks,
                 const std::vector<ChunkProducts>& products);

  um::Bytes logits;
  um::Bytes samples;
  um::Bytes scratchpad;
  um::Bytes end;
};

constexpr um::Bytes kAlignment{64};

um::Bytes aligned_bytes(const Layout& layout, std::initializer_list<std::size_t> sizes) {
  return um::round_up(um::Bytes{layout.dense_desc(sizes).get_size()}, kAlignment);
}

void run_product(Call& call, std::byte* a, std::byte* b, std::byte* c, std::byte* scratchpad) {
  call.run({{DNNL_ARG_SRC, a},
            {DNNL_ARG_WEIGHTS, b},
            {DNNL_ARG_DST, c},
            {DNNL_ARG_SCRATCHPAD, scratchpad}});
}

LogitChunks::LogitChunks(const Layout& layout, const VocabularyGeometry& geometry)
    : rows{layout, geometry.x}, vocabulary{geometry.vocabulary} {
  constexpr std::size_t kLeast = 16;
  const std::size_t most = std::max(kVocabularyChunk / vocabulary, kLeast);
  const std::size_t count = (rows.count + most - 1) / most;
  each = (rows.count + count - 1) / count;
}

ChunkProducts::ChunkProducts(const Machine& machine, const LogitChunks& chunks, std::size_t tokens,
                             ChunkPart part)
    : logits_{make(machine.engine, machine.layout.dense_desc({tokens, chunks.rows.stride}),
                   transposed(machine.layout.dense_desc({chunks.vocabulary, chunks.rows.stride})),
                   machine.layout.dense_desc({tokens, chunks.vocabulary}), false)} {
  if (part == ChunkPart::kLogits) return;
  dtable_ = make(machine.engine, transposed(machine.layout.dense_desc({tokens, chunks.vocabulary})),
                 machine.layout.dense_desc({tokens, chunks.rows.stride}),
                 float_desc({chunks.vocabulary, chunks.rows.stride}, dnnl::memory::format_tag::ab),
                 part == ChunkPart::kAddedGradients);
  dx_ = make(machine.engine, machine.layout.dense_desc({tokens, chunks.vocabulary}),
             machine.layout.dense_desc({chunks.vocabulary, chunks.rows.stride}),
             machine.layout.dense_desc({tokens, chunks.rows.stride}), false);
}

Call ChunkProducts::make(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& c,
                         bool adds) {
  const auto primitive = product(engine, a, b, c, adds);
  scratchpad_ = std::max(scratchpad_, scratchpad_bytes(primitive));
  return {engine,
          dnnl::matmul(primitive),
          {{DNNL_ARG_SRC, a},
           {DNNL_ARG_WEIGHTS, b},
           {DNNL_ARG_DST, c},
           {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc()}}};
}

void ChunkProducts::find_logits(std::byte* x, std::byte* table, std::byte* logits,
                                std::byte* scratchpad) {
  run_product(logits_, x, table, logits, scratchpad);
}
void ChunkProducts::find_dtable(std::byte* dlogits, std::byte* x, std::byte* dtable,
                                std::byte* scratchpad) {
  run_product(dtable_.value(), dlogits, x, dtable, scratchpad);
}
void ChunkProducts::find_dx(std::byte* dlogits, std::byte* table, std::byte* dx,
                            std::byte* scratchpad) {
  run_product(dx_.value(), dlogits, table, dx, scratchpad);
}

// Returns the products of the first chunk, of the middle ones and of the last; only the first if
// there is a single chunk. Includes gradients if `trains`.
std::vector<ChunkProducts> products_of(const Machine& machine, const LogitChunks& chunks,
                                       bool trains) {
  const ChunkPart first = trains ? ChunkPart::kFirstGradients : ChunkPart::kLogits;
  const ChunkPart later = trains ? ChunkPart::kAddedGradients : ChunkPart::kLogits;
  std::vector<ChunkProducts> products;
  products.emplace_back(machine, chunks, chunks.each, first);
  const std::size_t count = (chunks.rows.count + chunks.each - 1) / chunks.each;
  if (count == 1) return products;
  products.emplace_back(machine, chunks, chunks.each, later);
  products.emplace_back(machine, chunks, chunks.rows.count - (count - 1) * chunks.each, later);
  return products;
}

VocabularyRoom::VocabularyRoom(const Machine& machine, const LogitChunks& chunks,
                               const std::vector<ChunkProducts>& products) {
  if (machine.layout.is_bf16()) {
    logits = aligned_bytes(machine.layout, {chunks.vocabulary, chunks.rows.stride});
  }
  samples = logits + aligned_bytes(machine.layout, {chunks.each, chunks.vocabulary});
  scratchpad = samples + um::round_up(um::Bytes{chunks.rows.count * sizeof(TokenLoss)}, kAlignment);
  um::Bytes largest;
  for (const ChunkProducts& each : products) largest = std::max(largest, each.scratchpad());
  end = scratchpad + largest;
}

// Returns the largest of a token's logits.
template <class T>
SPILLWAY_WIDE float largest_of(const T* logits, std::size_t count) {
  float most = logits[0];
#pragma omp simd reduction(max : most)
  for (std::size_t v = 1; v < count; ++v) {
    const float logit = logits[v];
    most = logit > most ? logit : most;
  }
  return most;
}

// Returns the sum of exp(logit - most), in double, so that its rounding does not show in the mean
// loss.
template <class T>
SPILLWAY_WIDE double exponential_sum(const T* logits, std::size_t count, float most) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t v = 0; v < count; ++v) {
    sum += static_cast<double>(exponential(logits[v] - most));
  }
  return sum;
}

template <class T>
SPILLWAY_WIDE double logit_sum(const T* logits, std::size_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t v = 0; v < count; ++v) sum += static_cast<double>(logits[v]);
  return sum;
}

// Replaces each logit by exp(logit - most) scale - each.
template <class T>
SPILLWAY_WIDE void scale_exponentials(T* logits, std::size_t count, float most, float scale,
                                      float each) {
#pragma omp simd
  for (std::size_t v = 0; v < count; ++v) logits[v] = exponential(logits[v] - most) * scale - each;
}

template <class T>
SPILLWAY_WIDE void add_to_logits(T* logits, const float* bias, std::size_t count) {
#pragma omp simd
  for (std::size_t v = 0; v < count; ++v) logits[v] = logits[v] + bias[v];
}

template <class T>
SPILLWAY_WIDE void add_slopes(const T* slopes, std::size_t count, float* sums) {
#pragma omp simd
  for (std::size_t v = 0; v < count; ++v) sums[v] += slopes[v];
}

// The loss is -log softmax = log sum exp(logit - most) + most - logit[label]. The prediction is the
// first of equal largest logits.
template <class T>
TokenLoss judge_token(const T* logits, std::int32_t label, float most, double sum) {
  if (label < 0) return {.loss = 0, .correct = 0};
  const auto truth = static_cast<std::size_t>(label);
  const float own = logits[truth];
  const bool is_first = own == most && std::find(logits, logits + truth, most) == logits + truth;
  return {.loss = static_cast<float>(std::log(sum)) + (most - own),
          .correct = is_first ? 1.F : 0.F};
}

// Mixes the label's loss, `own`, with the mean loss over the vocabulary.
template <class T>
float smoothed_token(float own, const T* logits, std::size_t count, float most, double sum,
                     float smoothing) {
  const double mean = std::log(sum) + static_cast<double>(most) -
                      logit_sum(logits, count) / static_cast<double>(count);
  const auto part = static_cast<double>(smoothing);
  return static_cast<float>((1 - part) * static_cast<double>(own) + part * mean);
}

// Replaces logits by (softmax - (1 - smoothing) one-hot label - smoothing / vocabulary) times
// `share`.
template <class T>
void differentiate_token(T* logits, std::size_t count, std::int32_t label, float most, double sum,
                         float share, float smoothing) {
  if (label < 0) {
    std::fill_n(logits, count, T{});
    return;
  }
  const auto scale = static_cast<float>(static_cast<double>(share) / sum);
  T& truth = logits[static_cast<std::size_t>(label)];
  const float each = share * smoothing / static_cast<float>(count);
  const float own = exponential(truth - most) * scale - (each + share * (1 - smoothing));
  scale_exponentials(logits, count, most, scale, each);
  truth = own;
}

template <class Op>
class VocabularyLossKernel final : public HostKernel {
 public:
  VocabularyLossKernel(const Machine& machine, const Op& op)
      : HostKernel{machine, operand_count(op)},
        op_{op},
        layout_{machine.layout},
        chunks_{machine.layout, op.geometry},
        products_{products_of(machine, chunks_, kIsTraining)},
        room_{machine, chunks_, products_},
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
    auto* const samples = reinterpret_cast<TokenLoss*>(arguments.workspace + room_.samples.count());
    with_elements(layout_, [&](auto elements) {
      std::byte* const table = own_table(elements, operands.in.table, arguments.workspace);
      for (std::size_t first = 0; first < count; first += chunks_.each) {
        compute_chunk(elements, operands, table,
                      {.first = first, .count = std::min(chunks_.each, count - first)}, labels,
                      share, arguments.workspace, samples);
      }
    });
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

  // Returns the table in the tensors' type.
  static std::byte* own_table(ElementsOf<float> /*elements*/, std::byte* table,
                              std::byte* /*room*/) {
    return table;
  }
  std::byte* own_table(ElementsOf<Bfloat16> elements, std::byte* table, std::byte* room) const {
    const float* const from = floats(table);
    Bfloat16* const to = elements(room);
    const std::size_t count = chunks_.vocabulary * chunks_.rows.stride;
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
    return room;
  }

  [[nodiscard]] ChunkProducts& products_for(const Chunk& chunk) {
    if (chunk.first == 0) return products_.front();
    const bool is_last = chunk.first + chunk.count == chunks_.rows.count;
    return is_last ? products_.back() : products_.at(1);
  }

  template <class T>
  void compute_chunk(ElementsOf<T> elements, const Operands<Op>& operands, std::byte* table,
                     const Chunk& chunk, const std::int32_t* labels, float share,
                     std::byte* workspace, TokenLoss* samples) {
    const std::size_t vocabulary = chunks_.vocabulary;
    const std::size_t begin = chunk.first * chunks_.rows.stride * sizeof(T);
    std::byte* const x = operands.in.x + begin;
    std::byte* const room = workspace + room_.logits.count();
    std::byte* const scratchpad = workspace + room_.scratchpad.count();
    T* const logits = elements(room);
    ChunkProducts& products = products_for(chunk);
    products.find_logits(x, table, room, scratchpad);
    const float* const bias = op_.geometry.bias ? floats(operands.in.bias) : nullptr;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < chunk.count; ++i) {
      T* const own = logits + i * vocabulary;
      if (bias != nullptr) add_to_logits(own, bias, vocabulary);
      const std::int32_t label = labels[chunk.first + i];
      const float most = largest_of(own, vocabulary);
      const double sum = exponential_sum(own, vocabulary, most);
      samples[chunk.first + i] = judge_token(own, label, most, sum);
      if constexpr (kIsTraining) {
        if (op_.smoothing > 0 && label >= 0) {
          float& loss = samples[chunk.first + i].loss;
          loss = smoothed_token(loss, own, vocabulary, most, sum, op_.smoothing);
        }
        differentiate_token(own, vocabulary, label, most, sum, share, op_.smoothing);
      }
    }
    if constexpr (kIsTraining) {
      products.find_dtable(room, x, operands.out.dtable, scratchpad);
      if (op_.geometry.bias) {
        add_biases(logits, chunk.count, floats(operands.out.dbias), chunk.first > 0);
      }
      products.find_dx(room, table, operands.out.dx + begin, scratchpad);  // last: dx may be x
    }
  }

  template <class T>
  void add_biases(const T* slopes, std::size_t count, float* dbias, bool adds) const {
    constexpr std::size_t kColumns = 1024;
    const std::size_t vocabulary = chunks_.vocabulary;
#pragma omp parallel for schedule(static)
    for (std::size_t begin = 0; begin < vocabulary; begin += kColumns) {
      const std::size_t end = std::min(begin + kColumns, vocabulary);
      if (!adds) std::fill(dbias + begin, dbias + end, 0.F);
      for (std::size_t i = 0; i < count; ++i) {
        add_slopes(slopes + i * vocabulary + begin, end - begin, dbias + begin);
      }
    }
  }

  // Returns the weight of a token in the loss.
  [[nodiscard]] float share_of(const std::int32_t* labels, const StepContext& context) const {
    const auto here = std::count_if(labels, labels + chunks_.rows.count,
                                    [](std::int32_t label) { return label >= 0; });
    const std::size_t count = context.counted_labels.value_or(static_cast<std::size_t>(here));
    return count > 0 ? 1.F / static_cast<float>(count) : 0.F;
  }

  // Sums in token order, whichever thread computed the terms.
  void write_result(const TokenLoss* samples, float scale, float* result) const {
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
  Layout layout_;
  LogitChunks chunks_;
  std::vector<ChunkProducts> products_;
  VocabularyRoom room_;
  ParameterParts table_;
  ParameterParts bias_;
};

um::Bytes workspace(const Machine& machine, const VocabularyGeometry& geometry, bool trains) {
  const LogitChunks chunks{machine.layout, geometry};
  return VocabularyRoom{machine, chunks, products_of(machine, chunks, trains)}.end;
}

// Returns the product of two rows, computed by one thread, so that its bits do not depend on the
// number of threads.
template <class T>
float product_of_rows(const T* a, const float* b, std::size_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLossTrain& op) {
  return std::make_unique<VocabularyLossKernel<VocabularyLossTrain>>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLossEvaluate& op) {
  return std::make_unique<VocabularyLossKernel<VocabularyLossEvaluate>>(machine, op);
}

um::Bytes workspace_of(const Machine& machine, const VocabularyLossTrain& op) {
  return workspace(machine, op.geometry, true);
}
um::Bytes workspace_of(const Machine& machine, const VocabularyLossEvaluate& op) {
  return workspace(machine, op.geometry, false);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLogits& op) {
  const TokenRows rows{machine.layout, op.geometry.x};
  return element_kernel_of(
      machine, op, [op, rows](auto elements, const auto& operands, const auto& arguments) {
        const std::size_t tokens = rows.count / op.geometry.x.batch;
        const std::size_t position = arguments.context->position;
        um::expects(position < tokens, "a token of the samples");
        const float* const table = floats(operands.in.table);
        const float* const bias = op.geometry.bias ? floats(operands.in.bias) : nullptr;
        const std::size_t vocabulary = op.geometry.vocabulary;
        for (std::size_t n = 0; n < op.geometry.x.batch; ++n) {
          const auto* const x = elements(operands.in.x) + (n * tokens + position) * rows.stride;
          float* const logits = floats(operands.out.logits) + n * vocabulary;
#pragma omp parallel for schedule(static)
          for (std::size_t v = 0; v < vocabulary; ++v) {
            const float own = bias == nullptr ? 0.F : bias[v];
            logits[v] = product_of_rows(x, table + v * rows.stride, rows.channels) + own;
          }
        }
      });
}

}  // namespace spillway::host
