#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/cuda/cudnn/attention_engines.h"
#include "src/cuda/cudnn/device_less_planning.h"
#include "src/cuda/kernels/kernels.h"
#include "tests/src/cuda/driver/no_device_driver.h"

namespace spillway::cuda {
namespace {

using namespace um::literals;
using Names = std::vector<std::string>;

constexpr std::size_t kListedVersion = 91900;

AttentionGeometry attention(std::size_t batch, Heads heads, std::size_t tokens, std::size_t width,
                            bool is_causal) {
  return {.x = {.batch = batch,
                .image = nets::sequence(tokens, (heads.heads + 2 * heads.kv_heads) * width)},
          .heads = heads,
          .is_causal = is_causal};
}

// The attention of GPT-2 at batch size 4.
AttentionGeometry gpt2(std::size_t tokens = 1024) {
  return attention(4, {12, 12}, tokens, 64, true);
}

class AttentionEnginesOfCudnn : public NoDeviceDriver {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() != kListedVersion) GTEST_SKIP() << "these are the engines of cuDNN 9.19";
  }
  static Names listed(const std::string& device, AttentionPass pass, const AttentionGeometry& g) {
    Names names;
    const CudnnTarget target = CudnnTarget::described(described_device(device));
    for (const auto& engine : list_attention(target, problem_of(pass, g), 4_GiB).engines) {
      names.push_back(engine.name());
    }
    return names;
  }
};

TEST_F(AttentionEnginesOfCudnn, AreTheseForAnH200) {
  for (const char* const device : {"h100", "h200"}) {
    for (const bool is_causal : {false, true}) {
      for (const std::size_t tokens : {197, 256, 1024}) {
        const AttentionGeometry g = attention(4, {12, 12}, tokens, 64, is_causal);
        EXPECT_EQ(listed(device, AttentionPass::kForward, g),
                  (Names{"engine2_k24=7", "engine1_k24=6", "engine1_k24=5", "engine1_k24=3",
                         "engine1", "engine2"}));
        EXPECT_EQ(listed(device, AttentionPass::kBackward, g),
                  (Names{"engine6_k24=26", "engine7_k24=26"}));
      }
    }
  }
}

TEST_F(AttentionEnginesOfCudnn, AreTheseForAnA100) {
  EXPECT_EQ(listed("a100", AttentionPass::kForward, gpt2()),
            (Names{"engine1_k24=6", "engine1_k24=5", "engine1_k24=3", "engine1"}));
  EXPECT_EQ(listed("a100", AttentionPass::kBackward, gpt2()), Names{"engine7_k24=26"});
}

// Shared keys, one token, heads of 8 to 256, numbers of tokens that are not multiples of a tile.
TEST_F(AttentionEnginesOfCudnn, TakeHeadsInMultiplesOf8) {
  for (const auto& g :
       {attention(2, {8, 2}, 256, 64, true), attention(2, {8, 1}, 33, 64, false),
        attention(3, {2, 2}, 1, 8, true), attention(2, {4, 4}, 37, 40, true),
        attention(2, {4, 2}, 100, 128, true), attention(2, {4, 4}, 64, 256, true)}) {
    EXPECT_TRUE(may_be_cudnns(Precision::kBf16, g));
    EXPECT_FALSE(listed("h200", AttentionPass::kForward, g).empty());
    EXPECT_FALSE(listed("h200", AttentionPass::kBackward, g).empty());
  }
  const AttentionGeometry odd = attention(2, {3, 3}, 16, 12, true);
  EXPECT_FALSE(may_be_cudnns(Precision::kBf16, odd));
  EXPECT_EQ(listed("h200", AttentionPass::kForward, odd), Names{});
}

// The workspace keeps gradients of 4 x 12 x 1024 x 1024 scores, two bytes each, and a float per
// query. Some engines need a few bytes more.
TEST_F(AttentionEnginesOfCudnn, KeepGradientsOfScoresOnTheWayBack) {
  const CudnnTarget target = CudnnTarget::described(described_device("h200"));
  for (const auto& engine :
       list_attention(target, problem_of(AttentionForward{gpt2()}), 4_GiB).engines) {
    EXPECT_LE(engine.workspace(), 256_B);
  }
  const AttentionProblem backward = problem_of(AttentionBackward{gpt2()});
  for (const auto& engine : list_attention(target, backward, 4_GiB).engines) {
    EXPECT_EQ(engine.workspace(), 96_MiB + 192_KiB + 256_B);
  }
  EXPECT_EQ(list_attention(target, backward, 96_MiB).refusal,
            "cuDNN lists no engine for attention's gradient, 4 x 1024 tokens, 12 heads of 64 "
            "within 96.0 MiB; without a driver it lists none");
}

TEST_F(AttentionEnginesOfCudnn, AreCompiledAndFoundByTheirNames) {
  AttentionEngines engines{CudnnTarget::described(described_device("h200")), 1_GiB};
  const AttentionProblem forward = problem_of(AttentionForward{gpt2(256)});
  const std::vector<AttentionEngine>& offered = engines.offered(forward);
  ASSERT_EQ(offered.size(), 3);
  EXPECT_EQ(offered[0].name(), "engine2_k24=7");
  for (const AttentionEngine& engine : offered) {
    EXPECT_EQ(&engines.named(forward, engine.name()), &engine);
    EXPECT_LE(engine.plan().workspace(), engine.workspace());
  }
  EXPECT_EQ(&engines.offered(forward), &offered);
}

TEST_F(AttentionEnginesOfCudnn, StandBehindOurKernelInPlans) {
  const auto planned = plan_attention(described_device("h200"),
                                      {.precision = Precision::kBf16, .max_workspace = 1_GiB},
                                      nets::build_network("gpt:2,4,64,256"), 4);
  ASSERT_EQ(planned.size(), 2);  // all blocks are equal
  EXPECT_EQ(to_line(planned[0]),
            "h.0.attn forward default:0 engine2_k24=7:256 engine1_k24=3:0 engine1:0");
  EXPECT_EQ(to_line(planned[1]),
            "h.0.attn backward default:16384 engine6_k24=26:2113792 engine7_k24=26:2113792");
}

// In float, cuDNN only has a forward pass; dropout masks must equal the host's.
TEST_F(AttentionEnginesOfCudnn, AreForBfloat16WithoutDropout) {
  AttentionEngines engines{CudnnTarget::described(described_device("h200")), 1_GiB};
  AttentionGeometry dropping = gpt2();
  dropping.dropout = 0.1F;
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const Machine machine{.precision = precision, .attention = &engines};
    const bool is_bf16 = precision == Precision::kBf16;
    const AttentionGeometry g = is_bf16 ? dropping : gpt2();
    EXPECT_EQ(algorithms_of(machine, AttentionForward{g}).size(), 1);
    EXPECT_EQ(algorithms_of(machine, AttentionBackward{g}).size(), 1);
  }
}

// Checks what an attention kernel passes to cuDNN; execution stops before any launch.

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
