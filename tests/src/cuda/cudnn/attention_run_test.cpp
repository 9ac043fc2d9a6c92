// Checks what an attention kernel passes to cuDNN; execution stops before any launch.

#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <vector>

#include "src/cuda/cudnn/attention_engines.h"
#include "src/cuda/kernels/kernels.h"
#include "tests/src/cuda/driver/no_device_driver.h"

namespace spillway::cuda {
namespace {

using namespace um::literals;

// The arguments of the last execution.
struct Execution {
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  void* workspace = nullptr;
  std::size_t count = 0;
  std::map<std::int64_t, float> numbers;

  [[nodiscard]] std::map<std::int64_t, void*> tensors() const {
    std::map<std::int64_t, void*> all;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!numbers.contains(ids[i])) all[ids[i]] = addresses[i];
    }
    return all;
  }
};

Execution& execution() {
  static Execution last;
  return last;
}

template <class T>
std::vector<T> copied(const void* values, std::int64_t count) {
  const T* const first = static_cast<const T*>(values);
  return {first, first + count};
}

}  // namespace
}  // namespace spillway::cuda

// Replaces cuDNN's functions of the same name.
extern "C" cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                  cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t type,
                                                  std::int64_t count, const void* values) {
  using spillway::cuda::copied;
  using spillway::cuda::execution;
  static auto* const real = reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(
      dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
    execution().ids = copied<std::int64_t>(values, count);
  }
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    execution().addresses = copied<void*>(values, count);
  }
  if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
    execution().workspace = *static_cast<void* const*>(values);
  }
  return real(descriptor, name, type, count, values);
}

extern "C" cudnnStatus_t cudnnBackendExecute(cudnnHandle_t /*handle*/,
                                             cudnnBackendDescriptor_t /*plan*/,
                                             cudnnBackendDescriptor_t /*pack*/) {
  spillway::cuda::Execution& last = spillway::cuda::execution();
  ++last.count;
  for (std::size_t i = 0; i < last.ids.size(); ++i) {
    for (const std::int64_t number : {spillway::cuda::kTensorScale, spillway::cuda::kTensorMasked,
                                      spillway::cuda::kTensorOne}) {
      if (last.ids[i] == number) last.numbers[number] = *static_cast<float*>(last.addresses[i]);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

namespace spillway::cuda {
namespace {

class AttentionRunTest : public NoDeviceDriver {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() != 91900) GTEST_SKIP() << "the driver here is made for cuDNN 9.19";
    execution() = {};
  }
  static std::byte* address(std::size_t n) {
    static std::array<std::byte, 6 * 65536> memory;
    return memory.data() + n * 65536;
  }
  static AttentionGeometry geometry(bool is_causal) {
    // 4 heads of 16 with 2 key heads: rows of 128 numbers
    return {.x = {.batch = 2, .image = nets::sequence(20, 128)},
            .heads = {.heads = 4, .kv_heads = 2},
            .is_causal = is_causal};
  }
  template <class Op>
  void run(const Op& op, const std::vector<std::byte*>& operands, std::byte* workspace) {
    const AttentionEngine& engine = engines_.offered(problem_of(op)).at(0);
    const auto kernel = make_kernel(machine_, op, engine.name());
    const StepContext context;
    kernel->run({.operands = operands, .workspace = workspace, .context = &context});
  }

  AttentionEngines engines_{CudnnTarget::described(described_device("h200")), 1_GiB};
  Machine machine_{.precision = Precision::kBf16, .attention = &engines_};
};

TEST_F(AttentionRunTest, ReadsPartsOfEachRow) {
  std::byte* const x = address(0);
  run(AttentionForward{geometry(true)}, {x, address(1), address(2)}, address(3));
  EXPECT_EQ(execution().count, 1);
  EXPECT_EQ(execution().tensors(),
            (std::map<std::int64_t, void*>{{kTensorQueries, x},
                                           {kTensorKeys, x + 128},
                                           {kTensorValues, x + 192},
                                           {kTensorResult, address(1)},
                                           {kTensorStatistics, address(2)}}));
  EXPECT_EQ(execution().workspace, address(3));
  EXPECT_EQ(execution().numbers,
            (std::map<std::int64_t, float>{
                {kTensorScale, 0.25F}, {kTensorMasked, -std::numeric_limits<float>::infinity()}}));
}

TEST_F(AttentionRunTest, WritesPartsOfEachRowOnTheWayBack) {
  std::byte* const x = address(0);
  std::byte* const dx = address(4);
  run(AttentionBackward{geometry(false)}, {x, address(1), address(2), address(3), dx}, address(5));
  EXPECT_EQ(execution().count, 1);
  EXPECT_EQ(execution().tensors(),
            (std::map<std::int64_t, void*>{{kTensorQueries, x},
                                           {kTensorKeys, x + 128},
                                           {kTensorValues, x + 192},
                                           {kTensorResult, address(1)},
                                           {kTensorResultGradient, address(2)},
                                           {kTensorStatistics, address(3)},
                                           {kTensorQueryGradients, dx},
                                           {kTensorKeyGradients, dx + 128},
                                           {kTensorValueGradients, dx + 192},
                                           {kTensorMeans, address(5)}}));
  // 2 x 4 x 20 floats, rounded up to a multiple of 256 bytes
  EXPECT_EQ(execution().workspace, address(5) + 768);
  EXPECT_EQ(execution().numbers,
            (std::map<std::int64_t, float>{{kTensorScale, 0.25F}, {kTensorOne, 1.F}}));
}

}  // namespace
}  // namespace spillway::cuda
