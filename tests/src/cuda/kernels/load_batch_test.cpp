#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

// Exact but for one rounding.
class CudaBatchLoading : public DeviceRunner,
                         public ::testing::WithParamInterface<std::tuple<Precision, TensorShape>> {
 protected:
  CudaBatchLoading() : DeviceRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] Batch batch(unsigned seed) const {
    const Values images = host::random_values(shape_.elements(), seed);
    Batch batch{.images{images.begin(), images.end()}, .labels = {}};
    for (std::size_t n = 0; n < shape_.batch; ++n) {
      batch.labels.push_back(static_cast<std::int32_t>(n + seed) - 1);
    }
    return batch;
  }

  const TensorShape shape_ = std::get<1>(GetParam());
};

TEST_P(CudaBatchLoading, PutsEachBatchIntoTheLayout) {
  const LoadBatch op{.x = shape_};
  const std::unique_ptr<Kernel> kernel = make_kernel(machine(), op);
  DeviceBlock workspace{workspace_of(machine(), op)};
  std::vector<Operand> x;
  std::vector<Operand> labels;
  const std::vector<Batch> batches{batch(0), batch(1)};  // until all work is done
  for (const unsigned i : {0U, 1U}) {
    x.push_back(tensor(shape_));
    labels.push_back(bytes(um::Bytes{shape_.batch * sizeof(std::int32_t)}));
    const StepContext context{.batch = &batches[i]};
    const std::vector<std::byte*> operands{x[i].device.data(), labels[i].device.data()};
    kernel->run({.operands = operands, .workspace = workspace.data(), .context = &context});
    host().run(op, {&x[i].host, &labels[i].host}, context);
  }
  for (const unsigned i : {0U, 1U}) {
    expect_equal(shape_, x[i]);
    EXPECT_EQ(labels[i].device.bytes(), labels[i].host.bytes());
    EXPECT_TRUE(x[i].device.guard_is_intact());
    EXPECT_TRUE(labels[i].device.guard_is_intact());
  }
  EXPECT_TRUE(workspace.guard_is_intact());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaBatchLoading,
    ::testing::Combine(kPrecisions,
                       ::testing::Values(TensorShape{3, {3, 4, 5}}, TensorShape{2, {1, 7, 7}},
                                         TensorShape{3, {10, 3, 2}}, TensorShape{1, {20, 1, 1}},
                                         TensorShape{8, {3, 256, 256}})));

class CudaPixelLabels : public DeviceRunner {
 protected:
  CudaPixelLabels() : DeviceRunner{Precision::kFp32} {}
};

TEST_F(CudaPixelLabels, AreCopiedOneForEachPixel) {
  const TensorShape shape{2, {1, 2, 3}};
  Batch batch{.images = std::pmr::vector<float>(12, 0.5F), .labels = {}};
  for (std::int32_t i = 0; i < 12; ++i) batch.labels.push_back(i - 1);
  Operand x = tensor(shape);
  Operand labels = bytes(um::Bytes{12 * sizeof(std::int32_t)});
  run(LoadBatch{.x = shape, .labels_each = 6}, {&x, &labels}, {.batch = &batch});
  EXPECT_EQ(labels.device.bytes(), labels.host.bytes());
}

class WrongCudaBatch : public DeviceRunner {
 protected:
  WrongCudaBatch() : DeviceRunner{Precision::kFp32} {}
};

TEST_F(WrongCudaBatch, IsTheCallersBug) {
  const TensorShape shape{2, {1, 3, 3}};
  const Batch batch{.images = std::pmr::vector<float>(9), .labels = {0}};
  Operand x = tensor(shape);
  Operand labels = bytes(um::Bytes{8});
  EXPECT_THROW(run_on_device(LoadBatch{.x = shape}, {&x, &labels}, {.batch = &batch}),
               um::ContractError);
}

}  // namespace
}  // namespace spillway::cuda
