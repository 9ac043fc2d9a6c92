#include "tests/src/cuda/processor/kernel_costs.h"

#include <algorithm>
#include <bit>
#include <variant>

#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr double kFloat = sizeof(float);
constexpr double kBits = 8;          // elements per byte of a mask
constexpr std::size_t kBlock = 256;  // threads of most kernels
constexpr std::size_t kLanes = 32;
constexpr std::size_t kMostBlocks = 1U << 15U;
// Loads that the compiler moves before a wait in a loop without stores.
constexpr double kUnrolled = 4;
// Instructions of a thread.
constexpr double kDivision = 60;  // of 64-bit integers

double number(std::size_t count) { return static_cast<double>(count); }

std::size_t padded(std::size_t channels) { return Layout::padded(channels); }
double elements(const TensorShape& x) { return number(Layout::elements(x)); }

std::size_t blocks_for(std::size_t items) {
  return std::min((items + kBlock - 1) / kBlock, kMostBlocks);
}

// The threads of a launch over a matrix's tiles.
LaunchCost tiles(const ChannelMatrix& matrix, LaunchCost cost) {
  const ChannelTiling tiling = tiling_of(matrix);
  cost.blocks = std::size_t{tiling.columns} * tiling.chunks;
  cost.threads = std::size_t{tiling.across} * tiling.down;
  cost.resident = 1024;  // with 64 registers per thread
  return cost;
}

LaunchCost over_chunks(const ChannelMatrix& matrix, double read, double written) {
  return {.blocks = (matrix.channels + 31) / 32,
          .threads = kBlock,
          .read = read,
          .written = written,
          .ahead = 2 * kFloat * kUnrolled};
}

LaunchCost one_block(double read, double written, double ahead) {
  return {.blocks = 1, .threads = kBlock, .read = read, .written = written, .ahead = ahead};
}

class Works {
 public:
  explicit Works(Precision precision)
      : precision_{precision}, element_{precision == Precision::kBf16 ? 2.0 : 4.0} {}

  template <class Op>
  OperationWork operator()(const Op& /*op*/) const {
    throw um::Error{"no cost is known of this operation"};
  }

  OperationWork operator()(const LoadBatch& op) const {
    if (op.x.image.form == nets::Form::kTokens) return {};  // copies
    const double stored = number(op.x.elements()) * (op.has_bytes ? 1 : element_);
    const double read = stored + (op.has_bytes ? number(op.label_count()) * kFloat : 0);
    const std::size_t packs = Layout::elements(op.x) / lanes();
    return only("load images",
                {.blocks = blocks_for(packs),
                 .threads = kBlock,
                 .read = read,
                 .written = elements(op.x) * element_,
                 .ahead = number(op.x.image.channels) * (op.has_bytes ? 1 : element_),
                 .instructions = 3 * kDivision * number(packs)});
  }

  OperationWork operator()(const ReluBackward& op) const {
    const double x = elements(op.x);
    if (op.by_mask) return only("relu backward", by_groups(op.x, 1, 1, 1));
    return only("relu backward", by_packs(op.x, 2 * x, x, 2));
  }
  OperationWork operator()(const GeluForward& op) const {
    LaunchCost cost = by_packs(op.x, elements(op.x), elements(op.x), 1);
    cost.instructions = 30 * elements(op.x);  // of the PTX, with tanh
    return only("gelu forward", cost);
  }
  OperationWork operator()(const GeluBackward& op) const {
    LaunchCost cost = by_packs(op.x, 2 * elements(op.x), elements(op.x), 2);
    cost.instructions = 41 * elements(op.x);
    return only("gelu backward", cost);
  }
  OperationWork operator()(const AddForward& op) const {
    const double x = elements(op.x);
    if (!op.saves_mask) return only("add forward", by_packs(op.x, 2 * x, x, 2));
    LaunchCost cost = by_groups(op.x, 2, 1, 0);
    cost.written += x / kBits;
    return only("add forward", cost);
  }
  OperationWork operator()(const AddGradients& op) const {
    const double x = elements(op.x);
    const double written = op.twice ? 2 : 1;
    if (op.by_mask || (op.twice && !op.relu)) {
      return only("add gradients", by_groups(op.x, 2, written, op.by_mask ? 1 : 0));
    }
    const double read = op.relu ? 3 : 2;
    return only("add gradients", by_packs(op.x, read * x, written * x, read));
  }

  OperationWork operator()(const BatchNormForward& op) const {
    const ChannelMatrix m = matrix_of(op.x);
    const double x = elements(op.x) * element_;
    const double vector = number(m.channels) * kFloat;
    const double partials = 2 * number(tiling_of(m).chunks) * vector;
    const double mask = op.relu ? elements(op.x) / kBits : 0;
    return {
        .kernels = {
            {.kind = "batch norm forward",
             .launches = {tiles(m, {.read = x, .written = partials, .ahead = kUnrolled * group()}),
                          over_chunks(m, partials + 2 * vector, 4 * vector),
                          tiles(m, {.read = x + 4 * vector, .written = x + mask, .ahead = 64})},
             .least = 3 * x + mask}}};
  }
  OperationWork operator()(const BatchNormBackward& op) const {
    const ChannelMatrix m = matrix_of(op.x);
    const double x = elements(op.x) * element_;
    const double vector = number(m.channels) * kFloat;
    const double partials = 2 * number(tiling_of(m).chunks) * vector;
    const double mask = op.relu ? elements(op.x) / kBits : 0;
    return {
        .kernels = {
            {.kind = "batch norm backward",
             .launches = {tiles(m, {.read = 2 * x + mask + vector,
                                    .written = partials,
                                    .ahead = 4 * group()}),
                          over_chunks(m, partials + vector, 2 * vector),
                          tiles(m, {.read = 2 * x + mask + 5 * vector, .written = x, .ahead = 64})},
             .least = 5 * x + 2 * mask}}};
  }

  OperationWork operator()(const PoolForward& op) const {
    const double y = elements(op.y);
    const bool is_max = op.pool.kind == nets::PoolKind::kMax;
    return only("pool forward",
                by_packs(op.y, elements(op.x), y, number(op.pool.kernel.width), is_max ? y : 0));
  }
  OperationWork operator()(const PoolBackward& op) const {
    const double y = elements(op.y);
    const bool is_max = op.pool.kind == nets::PoolKind::kMax;
    LaunchCost cost = by_packs(op.x, y, elements(op.x), 1);
    if (is_max) cost.read += y;
    cost.instructions = 7 * kDivision * elements(op.x) / number(lanes());
    return only("pool backward", cost);
  }

  OperationWork operator()(const EmbeddingForward& op) const {
    const TokenMatrix m = token_matrix(op.y);
    const double rows = number(std::min(m.rows, op.vocabulary)) * number(m.stride) * kFloat;
    return only("embedding forward", {.blocks = blocks_for(m.rows * kLanes),
                                      .threads = kBlock,
                                      .read = number(m.rows) * kFloat + rows,
                                      .written = number(m.elements()) * element_,
                                      .ahead = 16});  // half, since it waits for the token first
  }
  OperationWork operator()(const EmbeddingBackward& op) const {
    const TokenMatrix m = token_matrix(op.y);
    const ParameterLayout layout{precision_, op.forward().parameters()};
    const double table = number(layout.float_count()) * kFloat;
    const double rows = number(std::min(m.rows, op.vocabulary)) * number(m.stride) * kFloat;
    const double dy = number(m.elements()) * element_;
    const double tokens = number(m.rows) * kFloat;
    KernelWork work{.kind = "embedding backward", .launches = {}, .least = tokens + dy + 2 * rows};
    if (!op.accumulates) {
      work.launches.push_back({.blocks = blocks_for(layout.float_count()),
                               .threads = kBlock,
                               .read = 0,
                               .written = table,
                               .ahead = 64});
      work.least += table;
    }
    // The passes of the sort write two arrays by turns.
    const auto passes = static_cast<std::size_t>(std::bit_width(op.vocabulary) + 3) / 4;
    const double sorted = 2 * tokens;
    work.launches.push_back({.blocks = 1,
                             .threads = 512,
                             .read = tokens + number(std::min<std::size_t>(passes - 1, 2)) * sorted,
                             .written = number(std::min<std::size_t>(passes, 2)) * sorted,
                             .ahead = 8,
                             .instructions = 40 * number(passes * m.rows)});
    const std::size_t slices = (m.stride / Layout::kChannelBlock + kLanes - 1) / kLanes;
    work.launches.push_back({.blocks = blocks_for(m.rows * slices * kLanes),
                             .threads = kBlock,
                             .read = sorted + dy + rows,
                             .written = rows,
                             .ahead = group()});
    // No token is so frequent that it has parts to add up.
    constexpr std::size_t kChunkTokens = 64;
    if (m.rows > kChunkTokens) {
      work.launches.push_back({.blocks = blocks_for(m.rows * slices * kLanes),
                               .threads = kBlock,
                               .read = tokens,
                               .written = 0,
                               .ahead = 1});
    }
    return {.kernels = {work}};
  }
  OperationWork operator()(const PositionsForward& op) const {
    const TokenMatrix m = token_matrix(op.x);
    const double x = number(m.elements()) * element_;
    return only("positions forward", {.blocks = blocks_for(m.rows * kLanes),
                                      .threads = kBlock,
                                      .read = x + number(m.tokens * m.stride) * kFloat,
                                      .written = x,
                                      .ahead = group() + 32});
  }
  OperationWork operator()(const PositionsBackward& op) const {
    const TokenMatrix m = token_matrix(op.x);
    const ParameterLayout layout{precision_, op.parameters};
    return only("positions backward",
                {.blocks = blocks_for(layout.float_count() / Layout::kChannelBlock),
                 .threads = kBlock,
                 .read = number(m.elements()) * element_,
                 .written = number(layout.float_count()) * kFloat,
                 .ahead = kUnrolled * group()});
  }

  OperationWork operator()(const RowNormForward& op) const {
    const TokenMatrix m = token_matrix(op.x);
    const double sides = op.is_centred ? 2 : 1;
    const double x = number(m.elements()) * element_;
    return only("row norm forward", {.blocks = std::min(row_blocks(m), kMostBlocks),
                                     .threads = kBlock,
                                     .read = x + sides * number(m.stride) * kFloat,
                                     .written = x + sides * number(m.rows) * kFloat,
                                     .ahead = row_groups(m) * group(),
                                     .resident = 512});  // with up to 128 registers per thread
  }
  OperationWork operator()(const RowNormBackward& op) const {
    constexpr std::size_t kMostChunks = 256;
    const TokenMatrix m = token_matrix(op.x);
    const double sides = op.is_centred ? 2 : 1;
    const double saved = sides * number(m.rows) * kFloat;
    const double x = number(m.elements()) * element_;
    const double vector = number(m.stride) * kFloat;
    const double read = op.accumulates ? 3 : 2;
    const std::size_t chunks = std::min(row_blocks(m), kMostChunks);
    const double sums = number(chunks) * sides * vector;
    const ChannelMatrix gradient{.rows = chunks, .channels = (op.is_centred ? 2 : 1) * m.stride};
    return {.kernels = {{.kind = "row norm backward",
                         .launches = {{.blocks = chunks,
                                       .threads = kBlock,
                                       .read = read * x + saved + vector,
                                       .written = x + sums,
                                       .ahead = read * row_groups(m) * group(),
                                       .resident = 512},
                                      over_chunks(gradient, sums, sides * vector)},
                         .least = (read + 1) * x + saved + (1 + sides) * vector}}};
  }

  // Each row's loss, 8 bytes, is left out: access hooks do not see the write of a returned struct.
  OperationWork operator()(const SoftmaxCrossEntropyTrain& op) const {
    const std::size_t rows = op.x.batch * op.x.image.height * op.x.image.width;
    const double logits = number(rows * op.x.image.channels) * element_;
    const double labels = number(rows) * kFloat;
    return {.kernels = {{.kind = "cross-entropy",
                         .launches = {share_cost(rows),
                                      {.blocks = blocks_for(rows * kLanes),
                                       .threads = kBlock,
                                       .read = logits + labels + kFloat,
                                       .written = elements(op.x) * element_,
                                       .ahead = kUnrolled * element_},
                                      result_cost(rows)},
                         .least = 2 * logits + labels}}};
  }

  // The rates of a step are left out: access hooks do not see the copy of a struct.
  OperationWork operator()(const UpdateParameters& op) const {
    const ParameterLayout layout{precision_, op.parameters};
    const std::size_t floats = layout.cuts().range(op.part).count();
    const double count = number(floats);
    const double copy = layout.has_bf16_copy() ? 2 * count : 0;
    const double read = number(op.read_count()) * kFloat;
    return only("update", {.blocks = blocks_for(floats / 4),
                           .threads = kBlock,
                           .read = read * count,
                           .written = number(op.write_count()) * kFloat * count + copy,
                           .ahead = read * 4});
  }

  OperationWork operator()(const LinearForward& op) const {
    return {.products = {{.kind = "linear forward",
                          .flops = flops(op.geometry),
                          .bytes = (inputs(op.geometry) + outputs(op.geometry)) * element_ +
                                   weights(op.geometry) * element_}}};
  }
  OperationWork operator()(const LinearBackwardData& op) const {
    return {.products = {{.kind = "linear backward, data",
                          .flops = flops(op.geometry),
                          .bytes = (inputs(op.geometry) + outputs(op.geometry)) * element_ +
                                   weights(op.geometry) * element_}}};
  }
  OperationWork operator()(const LinearBackwardWeights& op) const {
    const auto share = 1 / number(op.part.count);
    OperationWork work{
        .products = {{.kind = "linear backward, weights",
                      .flops = share * flops(op.geometry),
                      .bytes = (inputs(op.geometry) + share * outputs(op.geometry)) * element_ +
                               share * weights(op.geometry) * kFloat}}};
    if (op.geometry.bias && op.part.is_last()) {
      work.kernels.push_back(
          sums_of({.rows = op.geometry.x.batch, .channels = padded(op.geometry.features)}));
    }
    return work;
  }

  OperationWork operator()(const ConvolutionForward& op) const {
    return {.products = {convolution("convolution forward", op.geometry)}};
  }
  OperationWork operator()(const ConvolutionBackwardData& op) const {
    return {.products = {convolution("convolution backward, data", op.geometry)}};
  }
  OperationWork operator()(const ConvolutionBackwardWeights& op) const {
    OperationWork work{.products = {convolution("convolution backward, weights", op.geometry)}};
    if (precision_ == Precision::kBf16) {
      const ParameterLayout layout{precision_, op.geometry.parameters()};
      const std::size_t groups = layout.weight_count() / Layout::kChannelBlock;
      const double count = number(layout.weight_count());
      work.kernels.push_back({.kind = "widen gradients",
                              .launches = {{.blocks = blocks_for(groups),
                                            .threads = kBlock,
                                            .read = 2 * count,
                                            .written = kFloat * count,
                                            .ahead = 16}},
                              .least = 6 * count});
    }
    if (op.geometry.bias) work.kernels.push_back(sums_of(matrix_of(op.geometry.y)));
    return work;
  }

  OperationWork operator()(const AttentionForward& op) const {
    return {
        .products = {{.kind = "attention forward",
                      .flops = op.geometry.cost(2, 1).flops,
                      .bytes = (elements(op.geometry.x) + elements(op.geometry.y())) * element_ +
                               number(op.geometry.saved_count()) * kFloat}}};
  }
  OperationWork operator()(const AttentionBackward& op) const {
    return {.products = {
                {.kind = "attention backward",
                 .flops = op.geometry.cost(5, 2).flops,
                 .bytes = 2 * (elements(op.geometry.x) + elements(op.geometry.y())) * element_ +
                          number(op.geometry.saved_count()) * kFloat}}};
  }

  OperationWork operator()(const VocabularyLossTrain& op) const {
    const TokenMatrix m = token_matrix(op.geometry.x);
    const std::size_t columns = padded(op.geometry.vocabulary);
    const std::size_t most = std::max(kVocabularyChunk / columns, kLeastGpuTokens);
    const std::size_t chunks = (m.rows + most - 1) / most;
    const std::size_t each = (m.rows + chunks - 1) / chunks;
    KernelWork judged{.kind = "vocabulary loss",
                      .launches = {share_cost(m.rows)},
                      .least = number(m.rows * columns) * (kFloat + element_),
                      .flops = 10 * number(m.rows * op.geometry.vocabulary)};
    OperationWork work;
    const double table = number(columns * m.stride);
    for (std::size_t first = 0; first < m.rows; first += each) {
      const std::size_t rows = std::min(each, m.rows - first);
      judged.launches.push_back(judge_cost(precision_, rows, op.geometry.vocabulary));
      const double multiplied = 2 * number(rows) * table;
      const double x = number(rows * m.stride) * element_;
      const double logits = number(rows * columns);
      const double read_sum = first > 0 ? table * kFloat : 0;
      work.products.push_back({.kind = "vocabulary product, logits",
                               .flops = multiplied,
                               .bytes = x + table * element_ + logits * kFloat});
      work.products.push_back({.kind = "vocabulary product, table",
                               .flops = multiplied,
                               .bytes = x + logits * element_ + table * kFloat + read_sum});
      work.products.push_back({.kind = "vocabulary product, tokens",
                               .flops = multiplied,
                               .bytes = x + logits * element_ + table * element_});
    }
    judged.launches.push_back(result_cost(m.rows));
    work.kernels.push_back(judged);
    return work;
  }

 private:
  [[nodiscard]] std::size_t lanes() const { return precision_ == Precision::kBf16 ? 8 : 4; }
  [[nodiscard]] double group() const { return number(Layout::kChannelBlock) * element_; }

  // Returns the warps of a block of 8 that have a row of a norm together, and the most groups of 8
  // numbers that a thread of them keeps.
  [[nodiscard]] static std::size_t row_warps(const TokenMatrix& m) {
    std::size_t warps = 1;
    while (warps < 8 && m.stride > warps * kLanes * 4 * Layout::kChannelBlock) warps *= 2;
    return warps;
  }
  [[nodiscard]] static double row_groups(const TokenMatrix& m) {
    const std::size_t threads = row_warps(m) * kLanes;
    return number((m.stride / Layout::kChannelBlock + threads - 1) / threads);
  }
  [[nodiscard]] static std::size_t row_blocks(const TokenMatrix& m) {
    return (m.rows * row_warps(m) + 7) / 8;
  }

  [[nodiscard]] static OperationWork only(const char* kind, const LaunchCost& cost) {
    return {.kernels = {{.kind = kind, .launches = {cost}, .least = cost.read + cost.written}}};
  }

  // A thread per pack of a tensor of shape `x`. The numbers are elements.
  [[nodiscard]] LaunchCost by_packs(const TensorShape& x, double read, double written,
                                    double packs_ahead, double more_bytes = 0) const {
    return {.blocks = blocks_for(Layout::elements(x) / lanes()),
            .threads = kBlock,
            .read = read * element_,
            .written = written * element_ + more_bytes,
            .ahead = packs_ahead * 16};
  }
  // A thread per group. The numbers are tensors, and masks that are read.
  [[nodiscard]] LaunchCost by_groups(const TensorShape& x, double read, double written,
                                     double masks) const {
    const double count = elements(x);
    return {.blocks = blocks_for(Layout::elements(x) / Layout::kChannelBlock),
            .threads = kBlock,
            .read = read * count * element_ + masks * count / kBits,
            .written = written * count * element_,
            .ahead = read * group()};
  }

  [[nodiscard]] KernelWork sums_of(const ChannelMatrix& m) const {
    const double x = number(m.rows * m.channels) * element_;
    const double vector = number(m.channels) * kFloat;
    const double partials = number(tiling_of(m).chunks) * vector;
    return {.kind = "bias gradients",
            .launches = {tiles(m, {.read = x, .written = partials, .ahead = kUnrolled * group()}),
                         over_chunks(m, partials, vector)},
            .least = x + vector,
            .flops = number(m.rows * m.channels)};
  }

  [[nodiscard]] static double inputs(const LinearGeometry& g) {
    return number(g.x.batch * Layout::padded(g.x.image).elements());
  }
  [[nodiscard]] static double outputs(const LinearGeometry& g) {
    return number(g.x.batch * padded(g.features));
  }
  [[nodiscard]] static double weights(const LinearGeometry& g) {
    return number(Layout::padded(g.x.image).elements() * padded(g.features));
  }
  [[nodiscard]] static double flops(const LinearGeometry& g) {
    return 2 * inputs(g) * number(padded(g.features));
  }

  [[nodiscard]] ProductWork convolution(const char* kind, const ConvolutionGeometry& g) const {
    const ParameterLayout layout{precision_, g.parameters()};
    const std::size_t taps = filter_channels(g.parameters()) * g.kernel.height * g.kernel.width;
    return {.kind = kind,
            .flops = 2 * elements(g.y) * number(taps),
            .bytes = (elements(g.x) + elements(g.y) + number(layout.weight_count())) * element_};
  }

  Precision precision_;
  double element_;  // bytes
};

}  // namespace

OperationWork work_of(Precision precision, const Operation& operation) {
  OperationWork work = std::visit(Works{precision}, operation);
  // Beside products, each kernel knows its own.
  if (work.products.empty() && !work.kernels.empty()) {
    work.kernels[0].flops = cost_of(operation).flops;
  }
  return work;
}

// As many blocks count as would share the bytes equally.
std::vector<OperationWork> together(const std::vector<OperationWork>& updates) {
  constexpr std::size_t kParts = 32;
  constexpr std::size_t kMostOfPart = 256;
  std::vector<OperationWork> all;
  for (std::size_t first = 0; first < updates.size(); first += kParts) {
    const std::size_t end = std::min(first + kParts, updates.size());
    OperationWork work = updates[first];
    LaunchCost& launch = work.kernels[0].launches[0];
    double of_block = 0;  // bytes, most of all
    for (std::size_t i = first; i < end; ++i) {
      const LaunchCost& next = updates[i].kernels[0].launches[0];
      of_block = std::max(of_block, bytes_of(next) / number(std::min(next.blocks, kMostOfPart)));
      if (i == first) continue;
      launch.read += next.read;
      launch.written += next.written;
      work.kernels[0].least += updates[i].kernels[0].least;
      work.kernels[0].flops += updates[i].kernels[0].flops;
    }
    launch.blocks = static_cast<std::size_t>(bytes_of(launch) / of_block);
    all.push_back(work);
  }
  return all;
}

LaunchCost share_cost(std::size_t count) {
  return one_block(number(count) * kFloat + sizeof(std::uint64_t), kFloat, kFloat);
}

// Reads each row twice. A processor has one row, which stays in the cache if the rows of all
// processors, and their gradients, fit there.
LaunchCost judge_cost(Precision precision, std::size_t rows, std::size_t vocabulary) {
  const GpuRates gpu = h100();
  const double element = precision == Precision::kBf16 ? 2 : 4;
  const double row = number(padded(vocabulary));
  const bool stays = number(gpu.processors) * row * (kFloat + element) <= 0.9 * gpu.cache;
  return {.blocks = std::min(rows, kMostBlocks),
          .threads = 1024,
          .read = number(rows) * (row + 1) * kFloat + kFloat,
          .written = number(rows) * (row * element + 2 * kFloat),
          .ahead = 32,
          .again = stays ? 0 : number(rows) * row * kFloat,
          .instructions = 57 * number(rows) * row,  // of the PTX
          .resident = 1024};
}

LaunchCost result_cost(std::size_t count) {
  return one_block(2 * number(count) * kFloat + kFloat, 2 * kFloat, 2 * kFloat * kUnrolled);
}

// From NVIDIA's data sheet and architecture white paper of the H100. The clock is the boost clock
// of its PCIe card, below the 1.98 GHz of an SXM5. The shares, the latency and the time between
// kernels are assumed.
GpuRates h100() {
  return {.peak_bandwidth = 3.35e12,
          .memory_share = 0.9,
          .peak_flops = 989e12,
          .product_share = 0.65,
          .processors = 132,
          .lanes = 128,
          .clock = 1.755e9,
          .instruction_share = 0.65,
          .latency = 600e-9,
          .launch = 2e-6,
          .cache = 50e6};
}

double bytes_of(const LaunchCost& cost) { return cost.read + cost.written + cost.again; }

double seconds_of(const GpuRates& gpu, const LaunchCost& cost) {
  const std::size_t of_processor = std::max<std::size_t>(cost.resident / cost.threads, 1);
  const std::size_t running = std::min(cost.blocks, gpu.processors * of_processor);
  const double ahead = number(running * cost.threads) * cost.ahead;
  const double reached = std::min(gpu.bandwidth(), ahead / gpu.latency);
  const double used = number(std::min(cost.blocks, gpu.processors)) / number(gpu.processors);
  return gpu.launch +
         std::max(bytes_of(cost) / reached, cost.instructions / (gpu.instructions() * used));
}

double seconds_of(const GpuRates& gpu, const ProductWork& product) {
  return gpu.launch + std::max(product.flops / gpu.flops(), product.bytes / gpu.bandwidth());
}

}  // namespace spillway::cuda
