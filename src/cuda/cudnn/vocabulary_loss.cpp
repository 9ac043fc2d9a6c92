#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "src/cuda/cudnn/cublas_matmul.h"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/sequences/vocabulary_rows.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/backend.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kLogitAlignment{256};

// How tokens are cut into chunks of nearly equal size, and the layout of the workspace: a chunk's
// logits, over which their gradients are written, each token's contribution to the result, and a
// share.
struct Chunks {
  explicit Chunks(const VocabularyGeometry& geometry)
      : m{token_matrix(geometry.x)}, columns{Layout::padded(geometry.vocabulary)} {
    const std::size_t most = std::max(kVocabularyChunk / columns, kLeastGpuTokens);
    const std::size_t count = (m.rows + most - 1) / most;
    each = (m.rows + count - 1) / count;
    logits = um::round_up(float_bytes(each * columns), kLogitAlignment);
    losses = um::round_up(um::Bytes{m.rows * sizeof(TokenLoss)}, kLogitAlignment);
  }

  [[nodiscard]] std::size_t last() const { return m.rows - (m.rows - 1) / each * each; }
  /// Returns where the products' own workspace begins.
  [[nodiscard]] um::Bytes bytes() const { return logits + losses + kLogitAlignment; }

  TokenMatrix m;
  std::size_t columns;  // of the logits, padding included
  std::size_t each;     // tokens per chunk; the last may have fewer
  um::Bytes logits;
  um::Bytes losses;
};

// The three products for a chunk of `rows` tokens. Evaluation uses only the first.
struct Products {
  Products(const Machine& machine, const Chunks& chunks, std::size_t rows)
      : logits{machine,
               {.rows = rows,
                .columns = chunks.columns,
                .inner = chunks.m.stride,
                .b_is_transposed = true,
                .d_is_float = true,
                .purpose = "the product with the vocabulary"}},
        dx{machine,
           {.rows = rows,
            .columns = chunks.m.stride,
            .inner = chunks.columns,
            .a_stride = slope_stride(machine, {.stride = chunks.columns}),
            .purpose = "the gradient of the tokens"}},
        dtable{machine,
               {.rows = chunks.columns,
                .columns = chunks.m.stride,
                .inner = rows,
                .a_is_transposed = true,
                .a_stride = slope_stride(machine, {.stride = chunks.columns}),
                .d_is_float = true,
                .purpose = "the gradient of the vocabulary"}} {}

  [[nodiscard]] um::Bytes workspace() const {
    return std::max({logits.workspace(), dx.workspace(), dtable.workspace()});
  }

  Matmul logits;
  Matmul dx;
  Matmul dtable;
};

// Addresses in the workspace of one call.
struct Memory {
  Memory(const Chunks& chunks, std::byte* workspace)
      : logits{workspace},
        losses{reinterpret_cast<TokenLoss*>(workspace + chunks.logits.count())},
        share{reinterpret_cast<float*>(workspace + (chunks.logits + chunks.losses).count())},
        products{workspace + chunks.bytes().count()} {}

  std::byte* logits;
  TokenLoss* losses;
  float* share;
  std::byte* products;
};

template <class Op>
class VocabularyLoss {
 public:
  VocabularyLoss(const Machine& machine, const Op& op)
      : machine_{machine},
        op_{op},
        chunks_{op.geometry},
        layout_{machine.precision, op.geometry.table()},
        full_{machine, chunks_, chunks_.each},
        last_{machine, chunks_, chunks_.last()} {}

  [[nodiscard]] um::Bytes workspace() const {
    return chunks_.bytes() + std::max(full_.workspace(), last_.workspace());
  }

  void run(const Operands<Op>& operands, const std::uint64_t* whole, std::byte* workspace) const {
    const Memory memory{chunks_, workspace};
    const auto* const labels = reinterpret_cast<const std::int32_t*>(operands.in.labels);
    const std::size_t rows = chunks_.m.rows;
    if (kIsTraining) vocabulary_share(machine_, labels, rows, whole, memory.share);
    for (std::size_t first = 0; first < rows; first += chunks_.each) {
      run_chunk(operands, memory, labels, first, std::min(chunks_.each, rows - first));
    }
    write_vocabulary_result(machine_, memory.losses, rows, kIsTraining ? memory.share : nullptr,
                            reinterpret_cast<float*>(operands.out.result));
  }

 private:
  static constexpr bool kIsTraining = std::is_same_v<Op, VocabularyLossTrain>;

  void run_chunk(const Operands<Op>& operands, const Memory& memory, const std::int32_t* labels,
                 std::size_t first, std::size_t count) const {
    const Products& products = count == chunks_.each ? full_ : last_;
    const std::size_t row = (chunks_.m.stride * Layout{machine_.precision}.element_bytes()).count();
    std::byte* const x = operands.in.x + first * row;
    const std::byte* const table = kernel_weights(layout_, operands.in.table);
    products.logits.run(x, table, nullptr, memory.logits, memory.products);
    const LogitRows rows{
        .logits = reinterpret_cast<float*>(memory.logits),
        .rows = count,
        .vocabulary = op_.geometry.vocabulary,
        .stride = chunks_.columns,
        .bias = op_.geometry.bias ? reinterpret_cast<const float*>(operands.in.bias) : nullptr};
    float smoothing = 0;
    if constexpr (kIsTraining) smoothing = op_.smoothing;
    judge_rows(machine_, rows, labels + first, kIsTraining ? memory.share : nullptr, smoothing,
               memory.losses + first);
    if constexpr (kIsTraining) {
      const bool adds = first > 0;
      products.dtable.run(memory.logits, x, nullptr, operands.out.dtable, memory.products, adds);
      if (op_.geometry.bias) {
        sum_columns(machine_, rows, reinterpret_cast<float*>(operands.out.dbias), adds);
      }
      // Last, since dx may overwrite x.
      products.dx.run(memory.logits, table, nullptr, operands.out.dx + first * row,
                      memory.products);
    }
  }

  Machine machine_;
  Op op_;
  Chunks chunks_;
  ParameterLayout layout_;
  Products full_;
  Products last_;
};

template <class Op>
std::unique_ptr<Kernel> make(const Machine& machine, const Op& op) {
  auto whole = machine.numbers->add([](const StepContext& context) {
    return static_cast<std::uint64_t>(context.counted_labels.value_or(0));
  });
  return kernel_of(op, [loss = VocabularyLoss{machine, op}, whole = std::move(whole)](
                           const auto& operands, const auto& arguments) {
    loss.run(operands, whole.get(), arguments.workspace);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLossTrain& op) {
  return make(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLossEvaluate& op) {
  return make(machine, op);
}

um::Bytes workspace_of(const Machine& machine, const VocabularyLossTrain& op) {
  return VocabularyLoss{machine, op}.workspace();
}
um::Bytes workspace_of(const Machine& machine, const VocabularyLossEvaluate& op) {
  return VocabularyLoss{machine, op}.workspace();
}

}  // namespace spillway::cuda
