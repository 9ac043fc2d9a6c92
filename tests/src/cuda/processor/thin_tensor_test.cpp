// Tensors of more than 2^32 elements. Memory exists only for what the first and the last block of
// threads access. An index that is truncated to 32 bits causes a fault.
#include <sys/mman.h>

#include <cmath>
#include <limits>

#include "src/cuda/kernels/kernels.h"
#include "src/ops/dropout_mask.h"
#include "tests/src/cuda/processor/grid_run.h"
#include "tests/src/cuda/processor/kernel_runner.h"
#include "tests/src/cuda/processor/memory_watch.h"

namespace spillway::cuda {
namespace {

// A block of zeros with the given size, but without memory for untouched pages.
class ThinBlock {
 public:
  explicit ThinBlock(um::Bytes size)
      : size_{size.count()},
        memory_{
            static_cast<std::byte*>(mmap(nullptr, size_ + 2 * kAround, PROT_NONE, kFlags, -1, 0))} {
    um::expects(memory_ != MAP_FAILED, "there is room for addresses");
    um::expects(mprotect(data(), size_, PROT_READ | PROT_WRITE) == 0, "there is room for pages");
    processor::add_block(data(), size_);
  }
  ThinBlock(const ThinBlock&) = delete;
  ThinBlock& operator=(const ThinBlock&) = delete;
  ~ThinBlock() {
    processor::remove_block(data());
    munmap(memory_, size_ + 2 * kAround);
  }
  [[nodiscard]] std::byte* data() { return memory_ + kAround; }
  template <class T>
  [[nodiscard]] T* numbers() {
    return reinterpret_cast<T*>(data());
  }

 private:
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  static constexpr std::size_t kAround = std::size_t{1} << 36U;  // inaccessible addresses
  std::size_t size_;
  std::byte* memory_;
};

class ThinTensor : public KernelRunner {
 protected:
  [[nodiscard]] um::Bytes bytes_of(const TensorShape& shape) const {
    return Layout{machine().precision}.tensor_bytes(shape);
  }
  static void put(ThinBlock& block, std::size_t i, float value) {
    if (is_bf16()) {
      block.numbers<Bfloat16>()[i] = value;
    } else {
      block.numbers<float>()[i] = value;
    }
  }
  [[nodiscard]] static float get(ThinBlock& block, std::size_t i) {
    return is_bf16() ? float{block.numbers<Bfloat16>()[i]} : block.numbers<float>()[i];
  }
  // Runs only the first and last block of threads.
  template <class Op>
  void run_thin(const Op& op, const std::vector<ThinBlock*>& operands,
                const StepContext& context = {}) {
    um::Bytes workspace_size;
    if constexpr (requires { workspace_of(machine(), op); }) {
      workspace_size = workspace_of(machine(), op);
    }
    ThinBlock workspace{workspace_size};
    std::vector<std::byte*> addresses;
    for (ThinBlock* block : operands) addresses.push_back(block->data());
    const processor::OnlyOuterBlocks few;
    const auto kernel = make_kernel(machine(), op);
    machine().numbers->begin_step(context);
    kernel->run({.operands = addresses, .workspace = workspace.data(), .context = &context});
  }
};

// 2^35 + 2^26 elements: more than 2^32 packs; the last of 2^15 blocks of 2^8 threads has the last
// pack.
constexpr TensorShape kMany{(1U << 20U) + (1U << 11U), {8, 64, 64}};
constexpr std::size_t kLast = kMany.elements() - 1;
static_assert(kMany.elements() > std::numeric_limits<std::uint32_t>::max());

TEST_F(ThinTensor, IsRectifiedToItsEnds) {
  ThinBlock x{bytes_of(kMany)};
  ThinBlock y{bytes_of(kMany)};
  put(x, 0, 3);
  put(x, kLast - 1, -1);
  put(x, kLast, 2);
  put(y, kLast - 1, 7);
  run_thin(ReluForward{.x = kMany}, {&x, &y});
  EXPECT_EQ(get(y, 0), 3);
  EXPECT_EQ(get(y, kLast - 1), 0);
  EXPECT_EQ(get(y, kLast), 2);
}

TEST_F(ThinTensor, DropsByTheNumberOfItsPixel) {
  ThinBlock x{bytes_of(kMany)};
  ThinBlock y{bytes_of(kMany)};
  constexpr std::size_t kPixel = kMany.elements() / 8 - 1;
  for (std::size_t c = 0; c < 8; ++c) put(x, 8 * kPixel + c, 1);
  const StepContext context{.seed = 7, .step = 3};
  run_thin(DropoutForward{.x = kMany, .probability = 0.5F, .stream = 2}, {&x, &y}, context);
  const DropoutMask mask = dropout_mask(kMany.image, 0.5F, 2, 0, context);
  for (std::size_t c = 0; c < 8; ++c) {
    EXPECT_EQ(get(y, 8 * kPixel + c), mask.apply(mask.words(kPixel, c / 4)[c % 4], 1.F));
  }
}

// Windows of 1 by 2 cover the last two pixels.
TEST_F(ThinTensor, IsPooledAtItsEnds) {
  constexpr TensorShape kWide{kMany.batch, {8, 64, 128}};
  constexpr std::size_t kLastOfWide = kWide.elements() - 1;
  for (const nets::PoolKind kind : {nets::PoolKind::kMax, nets::PoolKind::kAverage}) {
    const nets::Pool pool{.kind = kind, .kernel = {1, 2}, .stride = {1, 2}};
    const bool is_max = kind == nets::PoolKind::kMax;
    ThinBlock x{bytes_of(kWide)};
    ThinBlock y{bytes_of(kMany)};
    ThinBlock index{um::Bytes{kMany.elements()}};
    put(x, kLastOfWide, 4);
    const PoolForward forward{.x = kWide, .y = kMany, .pool = pool};
    const PoolBackward backward{.x = kWide, .y = kMany, .pool = pool};
    is_max ? run_thin(forward, {&x, &y, &index}) : run_thin(forward, {&x, &y});
    EXPECT_EQ(get(y, kLast), is_max ? 4 : 2);
    is_max ? run_thin(backward, {&y, &index, &x}) : run_thin(backward, {&y, &x});
    EXPECT_EQ(get(x, kLastOfWide), is_max ? 4 : 1);
    EXPECT_EQ(get(x, kLastOfWide - 8), is_max ? 0 : 1);
  }
}

TEST_F(ThinTensor, IsCroppedAtItsEnds) {
  constexpr TensorShape kTall{kMany.batch, {8, 65, 64}};
  ThinBlock x{bytes_of(kTall)};
  ThinBlock y{bytes_of(kMany)};
  put(x, kTall.elements() - 1, 5);
  run_thin(CropForward{.x = kTall, .y = kMany, .offset = {1, 0}}, {&x, &y});
  EXPECT_EQ(get(y, kLast), 5);
}

// Moves packs, more than 2^32 in the concatenated tensor; after 3 channels, single elements.
TEST_F(ThinTensor, IsJoinedAndCutAtItsEnds) {
  constexpr std::size_t kBatch = (1U << 18U) + (1U << 11U);
  for (const std::size_t channels : {8U, 3U}) {
    const TensorShape first{kBatch, {channels, 64, 64}};
    const TensorShape second{kBatch, {8, 64, 64}};
    const ConcatForward op{.parts = {first, second}};
    const std::size_t last = Layout::elements(op.whole()) - 16 + channels + 7;
    ThinBlock a{bytes_of(first)};
    ThinBlock b{bytes_of(second)};
    ThinBlock y{bytes_of(op.whole())};
    put(b, second.elements() - 1, 6);
    run_thin(op, {&a, &b, &y});
    EXPECT_EQ(get(y, last), 6);
    put(b, second.elements() - 1, 0);
    run_thin(ConcatBackward{.y = op.whole(), .slices = {{.x = second, .first_channel = channels}}},
             {&y, &b});
    EXPECT_EQ(get(b, second.elements() - 1), 6);
  }
}

// All channels are zero except in the last pixel: y = x / (1 + 2 / 3 x^2) with x = 1.
TEST_F(ThinTensor, IsNormalisedByItsNeighboursAtItsEnds) {
  constexpr TensorShape kDeep{(1U << 22U) + (1U << 15U), {1024, 1, 1}};
  constexpr std::size_t kEnd = kDeep.elements() - 1;
  const nets::LocalResponseNorm norm{.size = 3, .alpha = 2, .beta = 1, .k = 1};
  ThinBlock x{bytes_of(kDeep)};
  ThinBlock y{bytes_of(kDeep)};
  ThinBlock dx{bytes_of(kDeep)};
  put(x, kEnd, 1);
  run_thin(LrnForward{.x = kDeep, .norm = norm}, {&x, &y});
  EXPECT_NEAR(get(y, kEnd), 0.6F, 0.002F);
  run_thin(LrnBackward{.x = kDeep, .norm = norm}, {&x, &y, &x, &dx});
  // 1 / base - 4 / 3 x y / base, with base = 5 / 3
  EXPECT_NEAR(get(dx, kEnd), 0.6F - 0.48F, 0.004F);
}

TEST_F(ThinTensor, IsJudgedAtItsEnds) {
  constexpr TensorShape kLogits{43008, {.channels = 100000}};
  static_assert(kLogits.elements() > std::numeric_limits<std::uint32_t>::max());
  ThinBlock logits{bytes_of(kLogits)};
  ThinBlock labels{um::Bytes{kLogits.batch * sizeof(std::int32_t)}};
  ThinBlock result{um::Bytes{2 * sizeof(float)}};
  ThinBlock dlogits{bytes_of(kLogits)};
  put(logits, kLogits.elements() - 1, 100);
  labels.numbers<std::int32_t>()[kLogits.batch - 1] = 99999;
  run_thin(SoftmaxCrossEntropyTrain{.x = kLogits}, {&logits, &labels, &result, &dlogits},
           {.counted_labels = 2});
  // 15 of the first and the last eight rows cost log(100000), each with weight 1/2.
  EXPECT_NEAR(result.numbers<float>()[0], 15 * std::log(100000.F) / 2, 1);
  EXPECT_NEAR(get(dlogits, kLogits.elements() - 100000), 0, 1e-9);
  EXPECT_NEAR(get(dlogits, kLogits.elements() - 2 * 100000), -0.5F, 0.01F);
}

// 2^29 rows of 8 channels: (x - mean) is 1 in the last row, 0 in all others.
constexpr TensorShape kRows{(1U << 17U) + 1, {8, 64, 64}};
constexpr std::size_t kEnd = kRows.elements() - 1;
static_assert(kRows.elements() > std::numeric_limits<std::uint32_t>::max());

TEST_F(ThinTensor, IsNormalisedAtItsEnds) {
  ThinBlock x{bytes_of(kRows)};
  ThinBlock y{bytes_of(kRows)};
  ThinBlock gamma_beta{um::Bytes{16 * sizeof(float)}};
  ThinBlock saved{um::Bytes{16 * sizeof(float)}};
  ThinBlock running{um::Bytes{16 * sizeof(float)}};
  ThinBlock mask{saved_bytes(machine(), BatchNormForward{.x = kRows, .relu = true})};
  for (std::size_t c = 0; c < 8; ++c) {
    gamma_beta.numbers<float>()[c] = 3;
    running.numbers<float>()[8 + c] = 1;
  }
  put(x, kEnd, 1);
  run_thin(BatchNormInference{.x = kRows, .epsilon = 0, .relu = true},
           {&x, &gamma_beta, &running, &y});
  EXPECT_EQ(get(y, kEnd), 3);
  EXPECT_EQ(get(y, kEnd - 1), 0);
  run_thin(BatchNormForward{.x = kRows, .epsilon = 1, .momentum = 0.1F, .relu = true},
           {&x, &gamma_beta, &y, &saved, &running, &mask});
  EXPECT_NEAR(get(y, kEnd), 3, 0.01);
  EXPECT_EQ(mask.numbers<std::uint8_t>()[kEnd / 8], 0x80);
  EXPECT_EQ(mask.numbers<std::uint8_t>()[kEnd / 8 - 1], 0);
}

TEST_F(ThinTensor, HasSlopesAtItsEnds) {
  ThinBlock x{bytes_of(kRows)};
  ThinBlock dy{bytes_of(kRows)};
  ThinBlock gamma_beta{um::Bytes{16 * sizeof(float)}};
  ThinBlock saved{um::Bytes{16 * sizeof(float)}};
  ThinBlock gradient{um::Bytes{16 * sizeof(float)}};
  gamma_beta.numbers<float>()[7] = 3;
  put(x, kEnd, 4);
  put(dy, kEnd, 2);
  run_thin(BatchNormBackward{.x = kRows, .epsilon = 1},
           {&x, &dy, &gamma_beta, &saved, &dy, &gradient});
  EXPECT_EQ(gradient.numbers<float>()[7], 8);      // dgamma = dy x / sqrt(0 + 1)
  EXPECT_EQ(gradient.numbers<float>()[8 + 7], 2);  // dbeta = dy
  EXPECT_NEAR(get(dy, kEnd), 6, 0.001);            // gamma dy, minus terms that vanish in 2^29 rows
}

TEST_F(ThinTensor, GetsBiasesAndIsSummedAtItsEnds) {
  ThinBlock y{bytes_of(kRows)};
  ThinBlock bias{um::Bytes{8 * sizeof(float)}};
  ThinBlock sums{um::Bytes{8 * sizeof(float)}};
  const ChannelMatrix matrix = matrix_of(kRows);
  ThinBlock workspace{channel_sums_workspace(matrix)};
  bias.numbers<float>()[7] = 3;
  put(y, kEnd - 1, -1);
  const processor::OnlyOuterBlocks few;
  channel_sums(machine(), matrix, y.data(), workspace.data(), sums.numbers<float>());
  EXPECT_EQ(sums.numbers<float>()[6], -1);
  add_bias_relu(machine(), matrix, y.data(), bias.numbers<float>(), /*relu=*/true);
  EXPECT_EQ(get(y, kEnd), 3);
  EXPECT_EQ(get(y, kEnd - 1), 0);
}

TEST_F(ThinTensor, IsWidenedToItsEnd) {
  constexpr std::size_t kCount = kMany.elements();
  ThinBlock from{um::Bytes{kCount * sizeof(Bfloat16)}};
  ThinBlock to{um::Bytes{kCount * sizeof(float)}};
  from.numbers<Bfloat16>()[kCount - 1] = 1.5F;
  const processor::OnlyOuterBlocks few;
  widen(machine(), kCount, from.data(), to.numbers<float>());
  EXPECT_EQ(to.numbers<float>()[kCount - 1], 1.5F);
}

// 2^34 + 2^25 weights, more than 2^32 packs of 4.
TEST_F(ThinTensor, OfParametersIsUpdatedToItsEnd) {
  const ParameterSpec spec = LinearParameters{(1U << 17U) + (1U << 8U), {1U << 17U, 1, 1}, false};
  const ParameterLayout layout{machine().precision, spec};
  const std::size_t last = layout.float_count() - 1;
  ThinBlock w{layout.bytes()};
  ThinBlock m{layout.bytes()};
  ThinBlock v{layout.bytes()};
  ThinBlock dw{layout.bytes()};
  w.numbers<float>()[last] = 1;
  dw.numbers<float>()[last] = 2;
  run_thin(
      UpdateParameters{.parameters = spec, .options = SgdOptions{.momentum = 0, .weight_decay = 0}},
      {&w, &m, &dw, &w, &m}, {.learning_rate = 0.25F});
  EXPECT_EQ(w.numbers<float>()[last], 0.5F);
  run_thin(AccumulateGradients{.parameters = spec}, {&dw, &w, &dw});
  EXPECT_EQ(dw.numbers<float>()[last], 2.5F);
  m.numbers<float>()[last] = 0;
  run_thin(UpdateParameters{.parameters = spec, .options = AdamOptions{.weight_decay = 0}},
           {&w, &m, &v, &dw, &w, &m, &v}, {.learning_rate = 0.25F});
  EXPECT_NEAR(w.numbers<float>()[last], 0.25F, 1e-4);  // the first step is as large as the rate
  if (layout.has_bf16_copy()) {
    const auto* const copy =
        reinterpret_cast<const Bfloat16*>(w.data() + layout.bf16_weights().count());
    EXPECT_EQ(copy[last], Bfloat16{w.numbers<float>()[last]});
  }
}

}  // namespace
}  // namespace spillway::cuda
