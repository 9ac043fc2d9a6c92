// Compares the costs of kernels with counts of real launches on small shapes, and adds them up for
// training steps. The tables of these steps are golden texts.
#include "tests/src/cuda/processor/kernel_costs.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/program/machine_size_model.h"
#include "src/program/step.h"
#include "tests/expect_text.h"
#include "tests/src/cuda/processor/grid_run.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

std::vector<LaunchCost> launches_of(const OperationWork& work) {
  std::vector<LaunchCost> all;
  for (const KernelWork& kernels : work.kernels) {
    all.insert(all.end(), kernels.launches.begin(), kernels.launches.end());
  }
  return all;
}

class KernelCosts : public KernelRunner {
 protected:
  [[nodiscard]] Block drawn(const TensorShape& shape) {
    return tensor(shape, random_values(shape.elements(), 1));
  }
  [[nodiscard]] Block drawn(const ParameterSpec& spec) {
    return parameters(spec, host::random_values(element_count(spec), 2));
  }
  [[nodiscard]] static Block distinct_tokens(std::size_t count) {
    std::vector<float> tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<float>(count - i));
    return numbers(tokens);
  }

  template <class Op>
  void expect_cost(const Op& op, const std::vector<Block*>& operands,
                   const StepContext& context = {}) {
    const processor::LaunchCounts counts;
    run_tested(op, operands, context);
    expect_counts(launches_of(work_of(machine().precision, op)), counts);
  }
  static void expect_counts(const std::vector<LaunchCost>& costs,
                            const processor::LaunchCounts& counts) {
    ASSERT_EQ(counts.launches().size(), costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const processor::LaunchCount& count = counts.launches()[i];
      EXPECT_EQ(count.blocks, costs[i].blocks) << "launch " << i;
      EXPECT_EQ(count.threads, costs[i].threads) << "launch " << i;
      EXPECT_EQ(static_cast<double>(count.read), costs[i].read) << "launch " << i;
      EXPECT_EQ(static_cast<double>(count.written), costs[i].written) << "launch " << i;
    }
  }
};

constexpr TensorShape kCountedImages{3, {24, 18, 20}};

TEST_F(KernelCosts, OfElementWiseOperationsAreCounted) {
  Block a = drawn(kCountedImages);
  Block b = drawn(kCountedImages);
  Block c = tensor(kCountedImages);
  const AddForward masked{.x = kCountedImages, .relu = true, .saves_mask = true};
  Block mask = saved_by(masked);
  expect_cost(masked, {&a, &b, &c, &mask});
  expect_cost(AddForward{.x = kCountedImages}, {&a, &b, &c});
  expect_cost(ReluBackward{.x = kCountedImages, .by_mask = true}, {&mask, &a, &c});
  expect_cost(ReluBackward{.x = kCountedImages}, {&b, &a, &c});
  expect_cost(GeluForward{.x = kCountedImages, .tanh = true}, {&a, &c});
  expect_cost(GeluBackward{.x = kCountedImages}, {&a, &b, &c});
  expect_cost(AddGradients{.x = kCountedImages}, {&a, &b, &c});
  Block d = tensor(kCountedImages);
  expect_cost(AddGradients{.x = kCountedImages, .relu = true}, {&a, &b, &c, &d});
  expect_cost(AddGradients{.x = kCountedImages, .relu = true, .by_mask = true, .twice = true},
              {&a, &b, &mask, &a, &b});
}

TEST_F(KernelCosts, OfBatchNormAreCounted) {
  for (const bool relu : {false, true}) {
    const BatchNormForward forward{
        .x = kCountedImages, .epsilon = 1e-3F, .momentum = 0.1F, .relu = relu};
    const BatchNormStatistics statistics{.channels = kCountedImages.image.channels};
    const BatchNormParameters spec{.channels = kCountedImages.image.channels};
    Block x = drawn(kCountedImages);
    Block y = tensor(kCountedImages);
    Block vectors = drawn(ParameterSpec{spec});
    Block saved = parameters(statistics);
    Block running = drawn(ParameterSpec{statistics});
    Block mask = bytes(um::Bytes{kCountedImages.elements() / 8});
    std::vector<Block*> written{&x, &vectors, &y, &saved, &running};
    if (relu) written.push_back(&mask);
    expect_cost(forward, written);
    Block gradient = parameters(spec);
    std::vector<Block*> operands{&x, &y, &vectors, &saved};
    if (relu) operands.push_back(&mask);
    operands.insert(operands.end(), {&y, &gradient});
    expect_cost(BatchNormBackward{.x = kCountedImages, .epsilon = 1e-3F, .relu = relu}, operands);
  }
}

TEST_F(KernelCosts, OfPoolingAreCounted) {
  for (const nets::PoolKind kind : {nets::PoolKind::kMax, nets::PoolKind::kAverage}) {
    const nets::Pool pool{kind, nets::square(3), nets::square(2), nets::square(1)};
    const TensorShape pooled{kCountedImages.batch, {24, 9, 10}};
    Block x = drawn(kCountedImages);
    Block y = tensor(pooled);
    Block index = bytes(um::Bytes{pooled.elements()});
    const PoolForward forward{.x = kCountedImages, .y = pooled, .pool = pool};
    const PoolBackward backward{.x = kCountedImages, .y = pooled, .pool = pool};
    if (kind == nets::PoolKind::kMax) {
      expect_cost(forward, {&x, &y, &index});
      expect_cost(backward, {&y, &index, &x});
    } else {
      expect_cost(forward, {&x, &y});
      expect_cost(backward, {&y, &x});
    }
  }
}

TEST_F(KernelCosts, OfSequencesAreCounted) {
  constexpr std::size_t kTokens = 70;
  const TensorShape texts{3, nets::sequence(kTokens, 48)};
  Block tokens = distinct_tokens(3 * kTokens);
  Block x = drawn(texts);
  Block dy = drawn(texts);
  Block y = tensor(texts);
  EmbeddingBackward embedding{.y = texts, .vocabulary = 3 * kTokens + 1};
  Block table = drawn(embedding.forward().parameters());
  expect_cost(embedding.forward(), {&tokens, &table, &y});
  expect_cost(embedding, {&tokens, &dy, &table});
  embedding.accumulates = true;
  expect_cost(embedding, {&tokens, &dy, &table, &table});
  const PositionParameters positions{.positions = kTokens, .segments = 0, .features = 48};
  Block places = drawn(ParameterSpec{positions});
  expect_cost(PositionsForward{.x = texts, .parameters = positions}, {&x, &places, &y});
  expect_cost(PositionsBackward{.x = texts, .parameters = positions}, {&dy, &places});
  for (const bool is_centred : {false, true}) {
    const RowNormForward forward{.x = texts, .epsilon = 1e-5F, .is_centred = is_centred};
    Block vectors = drawn(ParameterSpec{forward.parameters()});
    Block gradient = parameters(forward.parameters());
    Block saved = saved_by(forward);
    expect_cost(forward, {&x, &vectors, &y, &saved});
    RowNormBackward backward{.x = texts, .epsilon = 1e-5F, .is_centred = is_centred};
    expect_cost(backward, {&x, &dy, &vectors, &saved, &y, &gradient});
    backward.accumulates = true;
    expect_cost(backward, {&x, &dy, &vectors, &saved, &y, &y, &gradient});
  }
}

// Four times as many tokens, all of them equal, take at most four times as many accesses.
TEST_F(KernelCosts, OfEmbeddingsGrowWithTheTokens) {
  std::vector<std::size_t> accessed;
  for (const std::size_t count : {512U, 2048U}) {
    const EmbeddingBackward op{.y = {1, nets::sequence(count, 8)}, .vocabulary = 100};
    Block tokens = numbers(std::vector<float>(count, 7.F));
    Block dy = drawn(op.y);
    Block table = parameters(op.forward().parameters());
    const processor::LaunchCounts counts;
    run_tested(op, {&tokens, &dy, &table});
    accessed.push_back(0);
    for (const processor::LaunchCount& launch : counts.launches()) {
      accessed.back() += launch.accessed;
    }
  }
  EXPECT_LE(accessed[1], 4 * accessed[0]);
}

TEST_F(KernelCosts, OfLossesAndUpdatesAreCounted) {
  constexpr std::size_t kRows = 19;
  constexpr std::size_t kClasses = 1000;
  const TensorShape shape{kRows, {.channels = kClasses}};
  Block logits = drawn(shape);
  Block labels = numbers(std::vector<std::int32_t>(kRows, 7));
  Block result = bytes(um::Bytes{2 * sizeof(float)});
  Block dlogits = tensor(shape);
  expect_cost(SoftmaxCrossEntropyTrain{.x = shape}, {&logits, &labels, &result, &dlogits});

  const ParameterSpec spec = LinearParameters{64, {40, 1, 1}, true};
  Block w = drawn(spec);
  Block m = parameters(spec, Values(element_count(spec), 0.0));
  Block v = parameters(spec, Values(element_count(spec), 0.0));
  Block dw = drawn(spec);
  expect_cost(UpdateParameters{.parameters = spec, .options = SgdOptions{}}, {&w, &m, &dw, &w, &m});
  expect_cost(UpdateParameters{.parameters = spec, .options = AdamOptions{}},
              {&w, &m, &v, &dw, &w, &m, &v});

  const ChannelMatrix matrix = matrix_of(kCountedImages);
  Block x = drawn(kCountedImages);
  DeviceBlock workspace{channel_sums_workspace(matrix)};
  DeviceBlock sums{um::Bytes{matrix.channels * sizeof(float)}};
  const processor::LaunchCounts counts;
  channel_sums(machine(), matrix, x.device.data(), workspace.data(),
               reinterpret_cast<float*>(sums.data()));
  const LinearBackwardWeights with_bias{
      .geometry = {.x = {matrix.rows, {8}}, .features = matrix.channels, .bias = true}};
  expect_counts(launches_of(work_of(machine().precision, with_bias)), counts);
}

TEST_F(KernelCosts, OfGradientsThatAreWidenedAreCounted) {
  if (!is_bf16()) GTEST_SKIP() << "floats are not widened";
  const ConvolutionBackwardWeights op{.geometry = {.x = {1, {16, 5, 5}},
                                                   .y = {1, {24, 3, 3}},
                                                   .kernel = nets::square(3),
                                                   .stride = nets::square(1),
                                                   .padding = nets::square(0),
                                                   .bias = false}};
  const std::size_t count = 24 * 16 * 9;
  DeviceBlock from{um::Bytes{2 * count}};
  DeviceBlock to{um::Bytes{4 * count}};
  const processor::LaunchCounts counts;
  widen(machine(), count, from.data(), reinterpret_cast<float*>(to.data()));
  expect_counts(launches_of(work_of(machine().precision, op)), counts);
}

TEST_F(KernelCosts, OfImagesThatAreLoadedAreCounted) {
  const TensorShape shape{2, {3, 12, 10}};
  const Values images = host::random_values(shape.elements(), 1);
  const Batch batch{.images{images.begin(), images.end()}, .labels = {1, 2}};
  const LoadBatch op{.x = shape, .is_staged = true};
  Block waiting{.host = host::Block{um::Bytes{}}, .device = staged(op, batch)};
  Block x = tensor(shape);
  Block labels = bytes(um::Bytes{2 * sizeof(std::int32_t)});
  expect_cost(op, {&waiting, &x, &labels}, {.batch = &batch});
}

// The products are cuBLASLt's; the kernels between them are ours.
TEST_F(KernelCosts, OfAVocabularysLossAreCounted) {
  constexpr std::size_t kRows = 19;
  constexpr std::size_t kVocabulary = 1001;
  const std::size_t stride = Layout::padded(kVocabulary);
  const Precision precision = machine().precision;
  Block logits = numbers(host::to_floats(host::random_values(kRows * stride, 1)));
  Block labels = numbers(std::vector<std::int32_t>(kRows, 7));
  Block whole = numbers(std::vector<std::uint64_t>{0});
  Block losses = bytes(um::Bytes{kRows * sizeof(TokenLoss)});
  Block share = bytes(um::Bytes{sizeof(float)});
  Block result = bytes(um::Bytes{2 * sizeof(float)});
  auto* const own_share = reinterpret_cast<float*>(share.device.data());
  auto* const own_losses = reinterpret_cast<TokenLoss*>(losses.device.data());
  auto* const numbers_of_labels = reinterpret_cast<const std::int32_t*>(labels.device.data());
  const LogitRows rows{.logits = reinterpret_cast<float*>(logits.device.data()),
                       .rows = kRows,
                       .vocabulary = kVocabulary,
                       .stride = stride,
                       .bias = nullptr};
  const processor::LaunchCounts counts;
  vocabulary_share(machine(), numbers_of_labels, kRows,
                   reinterpret_cast<const std::uint64_t*>(whole.device.data()), own_share);
  judge_rows(machine(), rows, numbers_of_labels, own_share, 0, own_losses);
  write_vocabulary_result(machine(), own_losses, kRows, own_share,
                          reinterpret_cast<float*>(result.device.data()));
  expect_counts({share_cost(kRows), judge_cost(precision, kRows, kVocabulary), result_cost(kRows)},
                counts);
}

// A row of the table.
struct CostRow {
  std::string kind;
  std::size_t launches = 0;
  double bytes = 0;
  double least = 0;
  double flops = 0;
  double seconds = 0;
  bool is_product = false;

  [[nodiscard]] double ratio() const { return bytes / least; }
};

class CostTable {
 public:
  void add(const OperationWork& work) {
    for (const KernelWork& kernels : work.kernels) {
      CostRow& row = row_of(kernels.kind, false);
      row.least += kernels.least;
      row.flops += kernels.flops;
      for (const LaunchCost& launch : kernels.launches) {
        ++row.launches;
        row.bytes += bytes_of(launch);
        row.seconds += seconds_of(gpu_, launch);
      }
    }
    for (const ProductWork& product : work.products) {
      CostRow& row = row_of(product.kind, true);
      ++row.launches;
      row.bytes += product.bytes;
      row.flops += product.flops;
      row.seconds += seconds_of(gpu_, product);
    }
  }

  [[nodiscard]] const std::vector<CostRow>& rows() const { return rows_; }
  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const CostRow& row : rows_) sum += row.seconds;
    return sum;
  }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << std::fixed << std::left << std::setw(31) << "kernels" << std::right << std::setw(9)
        << "launches" << std::setw(10) << "GB" << std::setw(10) << "least GB" << std::setw(8)
        << "ratio" << std::setw(9) << "TFLOP" << std::setw(10) << "ms" << '\n';
    std::size_t launches = 0;
    for (const CostRow& row : rows_) {
      launches += row.launches;
      out << std::left << std::setw(31) << row.kind << std::right << std::setw(9) << row.launches
          << std::setprecision(3) << std::setw(10) << row.bytes / 1e9;
      if (row.is_product) {
        out << std::setw(18) << "library's";
      } else {
        out << std::setw(10) << row.least / 1e9 << std::setprecision(2) << std::setw(8)
            << row.ratio();
      }
      out << std::setprecision(3) << std::setw(9) << row.flops / 1e12 << std::setw(10)
          << row.seconds * 1e3 << '\n';
    }
    out << std::left << std::setw(31) << "all" << std::right << std::setw(9) << launches
        << std::setw(47) << std::setprecision(3) << seconds() * 1e3 << '\n';
    return out.str();
  }

 private:
  CostRow& row_of(const std::string& kind, bool is_product) {
    const auto found = std::ranges::find(rows_, kind, &CostRow::kind);
    if (found != rows_.end()) return *found;
    return rows_.emplace_back(CostRow{.kind = kind, .is_product = is_product});
  }

  GpuRates gpu_ = h100();
  std::vector<CostRow> rows_;
};

// Returns the costs of a training step in bf16. Attention is cuDNN's.
CostTable table_of(std::string_view network, std::size_t batch, const OptimizerOptions& optimizer) {
  const MachineSizeModel sizes{Precision::kBf16};
  const Step step = make_training_step(nets::build_network(network), sizes,
                                       {.batch = batch, .optimizer = optimizer});
  CostTable table;
  std::vector<OperationWork> updates;
  for (const Launch& launch : step.launches) {
    const bool is_update = std::holds_alternative<UpdateParameters>(launch.operation);
    OperationWork work = work_of(Precision::kBf16, launch.operation);
    is_update ? updates.push_back(std::move(work)) : table.add(work);
  }
  for (const OperationWork& work : together(updates)) table.add(work);
  return table;
}

const std::string kTables = "src/cuda/processor/kernel_costs.txt";
constexpr double kMostRatio = 1.25;

std::string text_of(const GpuRates& gpu) {
  std::ostringstream out;
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + " %"; };
  out << "Bytes are counted and times are modelled; nothing has been measured on a GPU.\n"
      << "memory: " << gpu.peak_bandwidth / 1e12 << " TB/s (NVIDIA's data sheet), of which "
      << percent(gpu.memory_share) << "; a load takes " << gpu.latency * 1e9 << " ns (assumed)\n"
      << "products in bf16: " << gpu.peak_flops / 1e12
      << " TFLOP/s (data sheet, without sparsity), of which " << percent(gpu.product_share) << '\n'
      << "instructions: " << gpu.processors << " multiprocessors of " << gpu.lanes
      << " lanes (architecture white paper) at " << gpu.clock / 1e9
      << " GHz (boost clock of the PCIe card), of which " << percent(gpu.instruction_share) << '\n'
      << "second-level cache: " << gpu.cache / 1e6 << " MB; between kernels: " << gpu.launch * 1e6
      << " us (assumed)\n"
      << "A kernel may move at most " << kMostRatio
      << " times its least bytes; exceptions: none.\n";
  return out.str();
}

void expect_kernels_within(const CostTable& table) {
  for (const CostRow& row : table.rows()) {
    if (!row.is_product) {
      EXPECT_LE(row.ratio(), kMostRatio) << row.kind;
    }
  }
}

TEST(StepCosts, AreOfTheRatesOfAnH100) {
  test::expect_text(kTables, "an H100 SXM5, 80 GB", text_of(h100()));
}

TEST(StepCosts, OfGpt2OnAnH100) {
  const CostTable table = table_of("gpt2", 32, AdamOptions{});
  test::expect_text(kTables, "gpt2, 32 texts of 1024 tokens, bf16", table.text());
  expect_kernels_within(table);
  EXPECT_LE(table.seconds(), 0.095);
}

TEST(StepCosts, OfResnet50OnAnH100) {
  const CostTable table = table_of("resnet50", 256, SgdOptions{});
  test::expect_text(kTables, "resnet50, 256 images of 224x224, bf16", table.text());
  expect_kernels_within(table);
  EXPECT_LE(table.seconds(), 0.058);
}

}  // namespace
}  // namespace spillway::cuda
