#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

class CudaBatchLoading : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  [[nodiscard]] Batch batch(unsigned seed) const {
    const Values images = host::random_values(shape_.elements(), seed);
    Batch batch{.images{images.begin(), images.end()}, .labels = {}};
    for (std::size_t n = 0; n < shape_.batch; ++n) {
      batch.labels.push_back(static_cast<std::int32_t>(n + seed) - 1);
    }
    return batch;
  }

  const TensorShape shape_ = GetParam();
};

// Behind each other.
TEST_P(CudaBatchLoading, PutsEachBatchIntoTheLayout) {
  const LoadBatch op{.x = shape_, .is_staged = true};
  const std::unique_ptr<Kernel> kernel = make_kernel(machine(), op);
  std::vector<Block> x;
  std::vector<Block> labels;
  const std::vector<Batch> batches{batch(0), batch(1)};
  for (const unsigned i : {0U, 1U}) {
    x.push_back(tensor(shape_));
    labels.push_back(bytes(um::Bytes{shape_.batch * sizeof(std::int32_t)}));
    const StepContext context{.batch = &batches[i]};
    DeviceBlock staged = this->staged(op, batches[i]);
    const std::vector<std::byte*> operands{staged.data(), x[i].device.data(),
                                           labels[i].device.data()};
    kernel->run({.operands = operands, .workspace = nullptr, .context = &context});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    host().run(LoadBatch{.x = shape_}, {&x[i].host, &labels[i].host}, context);
  }
  for (const unsigned i : {0U, 1U}) {
    expect_same_on_host(shape_, x[i]);
    EXPECT_EQ(labels[i].device.bytes(), labels[i].host.bytes());
    EXPECT_TRUE(x[i].device.guard_is_intact());
    EXPECT_TRUE(labels[i].device.guard_is_intact());
  }
}

// The stage of bytes is a quarter of that of floats, and a half of that of bfloat16.
TEST_P(CudaBatchLoading, StagesBytesAsTheyAre) {
  const std::size_t images = shape_.elements();
  const auto staged = [&](Precision precision, bool has_bytes) {
    const StagedBatch layout{precision, {.x = shape_, .is_staged = true, .has_bytes = has_bytes}};
    return (layout.bytes() - layout.images()).count();
  };
  EXPECT_EQ(staged(Precision::kFp32, true), images);
  EXPECT_EQ(staged(Precision::kBf16, true), images);
  EXPECT_EQ(staged(Precision::kFp32, false), 4 * images);
  EXPECT_EQ(staged(Precision::kBf16, false), 2 * images);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaBatchLoading,
                         ::testing::Values(TensorShape{3, {3, 4, 5}}, TensorShape{1, {20, 1, 1}},
                                           TensorShape{8, {3, 256, 256}}));

}  // namespace
}  // namespace spillway::cuda
