#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/exponential.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {
namespace {

constexpr um::Bytes kAlignment{64};
// Logits that are there at once take about so much memory.
constexpr std::size_t kChunkBytes = 48ULL << 20U;

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
    const std::size_t row = layout.dense_desc({vocabulary}).get_size();
    const std::size_t most = std::max(kChunkBytes / row, kLeast);
    const std::size_t count = (rows.count + most - 1) / most;
    each = (rows.count + count - 1) / count;
  }

  TokenRows rows;
  std::size_t vocabulary;
  std::size_t each;  // tokens of a chunk, but the last
};

// The products of a chunk of so many tokens, by the table in the tensors' type.
class ChunkProducts {
 public:
  ChunkProducts(const Machine& machine, const Chunks& chunks, std::size_t tokens, bool adds)
      : ChunkProducts{machine.engine,
                      {.x = machine.layout.dense_desc({tokens, chunks.rows.stride}),
                       .table = machine.layout.dense_desc({chunks.vocabulary, chunks.rows.stride}),
                       .logits = machine.layout.dense_desc({tokens, chunks.vocabulary}),
                       .dtable = float_desc({chunks.vocabulary, chunks.rows.stride},
                                            dnnl::memory::format_tag::ab)},
                      adds} {}

  [[nodiscard]] um::Bytes scratchpad() const { return scratchpad_; }

  // logits = x table^T
  void find_logits(std::byte* x, std::byte* table, std::byte* logits, std::byte* scratchpad) {
    run(logits_, x, table, logits, scratchpad);
  }
  // dtable = dlogits^T x, or += that
  void find_dtable(std::byte* dlogits, std::byte* x, std::byte* dtable, std::byte* scratchpad) {
    run(dtable_, dlogits, x, dtable, scratchpad);
  }
  // dx = dlogits table
  void find_dx(std::byte* dlogits, std::byte* table, std::byte* dx, std::byte* scratchpad) {
    run(dx_, dlogits, table, dx, scratchpad);
  }

 private:
  struct Descs {
    Desc x;
    Desc table;
    Desc logits;
    Desc dtable;
  };

  ChunkProducts(const dnnl::engine& engine, const Descs& descs, bool adds)
      : logits_{make(engine, descs.x, transposed(descs.table), descs.logits, false)},
        dtable_{make(engine, transposed(descs.logits), descs.x, descs.dtable, adds)},
        dx_{make(engine, descs.logits, descs.table, descs.x, false)} {}

  Call make(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& c, bool adds) {
    const auto primitive = product(engine, a, b, c, adds);
    scratchpad_ = std::max(scratchpad_, scratchpad_bytes(primitive));
    return {engine,
            dnnl::matmul(primitive),
            {{DNNL_ARG_SRC, a},
             {DNNL_ARG_WEIGHTS, b},
             {DNNL_ARG_DST, c},
             {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc()}}};
  }

  static void run(Call& call, std::byte* a, std::byte* b, std::byte* c, std::byte* scratchpad) {
    call.run({{DNNL_ARG_SRC, a},
              {DNNL_ARG_WEIGHTS, b},
              {DNNL_ARG_DST, c},
              {DNNL_ARG_SCRATCHPAD, scratchpad}});
  }

  um::Bytes scratchpad_{};  // first: make() adds to it
  Call logits_;
  Call dtable_;
  Call dx_;
};

// What lies in the workspace, in this order: with bfloat16 the table as such, a chunk's logits,
// what all tokens add to the result, and room for the products.
struct VocabularyRoom {
  VocabularyRoom(const Machine& machine, const Chunks& chunks, um::Bytes scratchpad)
      : logits{machine.layout.is_bf16()
                   ? size_of(machine.layout, {chunks.vocabulary, chunks.rows.stride})
                   : um::Bytes{}},
        samples{logits + size_of(machine.layout, {chunks.each, chunks.vocabulary})},
        products{samples + um::round_up(um::Bytes{chunks.rows.count * sizeof(Sample)}, kAlignment)},
        end{products + scratchpad} {}

  um::Bytes logits;
  um::Bytes samples;
  um::Bytes products;
  um::Bytes end;

 private:
  static um::Bytes size_of(const Layout& layout, std::initializer_list<std::size_t> sizes) {
    return um::round_up(um::Bytes{layout.dense_desc(sizes).get_size()}, kAlignment);
  }
};

// Those of the first chunk, of those between, and of the last; one chunk is a first one.
std::vector<ChunkProducts> products_of(const Machine& machine, const Chunks& chunks) {
  std::vector<ChunkProducts> products;
  products.emplace_back(machine, chunks, chunks.each, false);
  const std::size_t count = (chunks.rows.count + chunks.each - 1) / chunks.each;
  if (count == 1) return products;
  products.emplace_back(machine, chunks, chunks.each, true);
  products.emplace_back(machine, chunks, chunks.rows.count - (count - 1) * chunks.each, true);
  return products;
}

um::Bytes largest_scratchpad(const std::vector<ChunkProducts>& products) {
  um::Bytes largest;
  for (const ChunkProducts& each : products) largest = std::max(largest, each.scratchpad());
  return largest;
}

// A token's logits.
template <class T>
struct Logits {
  T* numbers;
  std::size_t count;

  [[nodiscard]] float largest() const {
    float most = numbers[0];
    for (std::size_t v = 1; v < count; ++v) {
      const float number = numbers[v];
      most = number > most ? number : most;
    }
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
      std::fill_n(numbers, count, T{});
      return;
    }
    const auto scale = static_cast<float>(static_cast<double>(share) / sum);
    const float own = numbers[static_cast<std::size_t>(label)];
#pragma omp simd
    for (std::size_t v = 0; v < count; ++v) numbers[v] = exponential(numbers[v] - most) * scale;
    const auto truth = static_cast<std::size_t>(label);
    numbers[truth] = exponential(own - most) * scale - share;
  }
};

template <class Op>
class VocabularyLossKernel final : public HostKernel {
 public:
  VocabularyLossKernel(const Machine& machine, const Op& op)
      : HostKernel{machine, operand_count(op)},
        op_{op},
        layout_{machine.layout},
        chunks_{machine.layout, op.geometry},
        products_{products_of(machine, chunks_)},
        room_{machine, chunks_, largest_scratchpad(products_)},
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
    auto* const samples = reinterpret_cast<Sample*>(arguments.workspace + room_.samples.count());
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

  // The table in the tensors' type.
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
                     std::byte* workspace, Sample* samples) {
    const std::size_t vocabulary = chunks_.vocabulary;
    const std::size_t begin = chunk.first * chunks_.rows.stride * sizeof(T);
    std::byte* const x = operands.in.x + begin;
    std::byte* const room = workspace + room_.logits.count();
    std::byte* const scratchpad = workspace + room_.products.count();
    T* const logits = elements(room);
    ChunkProducts& products = products_for(chunk);
    products.find_logits(x, table, room, scratchpad);
    const float* const bias = op_.geometry.bias ? floats(operands.in.bias) : nullptr;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const Logits<T> own{.numbers = logits + i * vocabulary, .count = vocabulary};
      for (std::size_t v = 0; bias != nullptr && v < vocabulary; ++v) {
        own.numbers[v] = own.numbers[v] + bias[v];
      }
      const std::int32_t label = labels[chunk.first + i];
      const float most = own.largest();
      const double sum = own.exponential_sum(most);
      samples[chunk.first + i] = own.judge(label, most, sum);
      if constexpr (kIsTraining) own.differentiate(label, most, sum, share);
    }
    if constexpr (kIsTraining) {
      products.find_dtable(room, x, operands.out.dtable, scratchpad);
      if (op_.geometry.bias) {
        add_biases(logits, chunk.count, floats(operands.out.dbias), chunk.first > 0);
      }
      products.find_dx(room, table, operands.out.dx + begin, scratchpad);  // last: it may go over x
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
  Layout layout_;
  Chunks chunks_;
  std::vector<ChunkProducts> products_;
  VocabularyRoom room_;
  ParameterParts table_;
  ParameterParts bias_;
};

um::Bytes workspace(const Machine& machine, const VocabularyGeometry& geometry) {
  const Chunks chunks{machine.layout, geometry};
  const um::Bytes scratchpad = largest_scratchpad(products_of(machine, chunks));
  return VocabularyRoom{machine, chunks, scratchpad}.end;
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
