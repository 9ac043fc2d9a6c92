// Checks the questions to cuBLASLt and which of its answers run. cuBLASLt needs a device, so that
// this program replaces its functions.

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "src/cuda/cudnn/cublas_matmul.h"
#include "src/cuda/kernels/kernels.h"
#include "tests/refusal.h"

namespace spillway::cuda {
namespace {

using namespace um::literals;

// An algorithm as this library keeps it in cuBLASLt's opaque bytes.
struct Algorithm {
  std::uint64_t id = 0;
  std::uint64_t tile = 0;
  std::uint64_t split = 1;
  std::uint64_t cluster = 0;
};

struct Answer {
  Algorithm algorithm;
  std::size_t workspace = 0;
  cublasStatus_t state = CUBLAS_STATUS_SUCCESS;
};

struct Library {
  std::vector<Answer> plain;      // to a product without a bias
  std::vector<Answer> with_bias;  // to a product that adds one
  int most_asked = 0;
  std::vector<std::uint32_t> reductions;  // masks of permitted reductions
  std::optional<Answer> ran;
};

Library& library() {
  static Library only;
  return only;
}

// A product's description.
struct Description {
  bool adds_bias = false;
};

}  // namespace
}  // namespace spillway::cuda

// Replace cuBLASLt's functions of the same names.
extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t /*status*/) { return "a failure"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t /*type*/,
                                        cudaDataType_t /*scale*/) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new spillway::cuda::Description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  delete reinterpret_cast<spillway::cuda::Description*>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* /*value*/, std::size_t /*size*/) {
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) {
    reinterpret_cast<spillway::cuda::Description*>(made)->adds_bias = true;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType /*type*/,
                                          std::uint64_t /*rows*/, std::uint64_t /*columns*/,
                                          std::int64_t /*stride*/) {
  *made = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t /*made*/) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t /*made*/) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t /*made*/,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t size) {
  if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    std::uint32_t mask = 1;
    std::memcpy(&mask, value, size);
    spillway::cuda::library().reductions.push_back(mask);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t /*a*/,
    cublasLtMatrixLayout_t /*b*/, cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t /*d*/,
    cublasLtMatmulPreference_t /*preference*/, int most, cublasLtMatmulHeuristicResult_t results[],
    int* count) {
  auto& all = spillway::cuda::library();
  all.most_asked = std::max(all.most_asked, most);
  const bool adds_bias = reinterpret_cast<spillway::cuda::Description*>(product)->adds_bias;
  const auto& answers = adds_bias ? all.with_bias : all.plain;
  if (answers.empty()) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(most, static_cast<int>(answers.size()));
  for (int i = 0; i < *count; ++i) {
    const auto& answer = answers[static_cast<std::size_t>(i)];
    static_assert(sizeof answer.algorithm <= sizeof results[i].algo);
    std::memcpy(&results[i].algo, &answer.algorithm, sizeof answer.algorithm);
    results[i].workspaceSize = answer.workspace;
    results[i].state = answer.state;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* opaque,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    void* value, std::size_t size,
                                                    std::size_t* written) {
  spillway::cuda::Algorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), opaque, sizeof algorithm);
  const bool is_narrow =
      name == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || name == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  if (size != (is_narrow ? 2 : 4)) return CUBLAS_STATUS_INVALID_VALUE;
  std::uint64_t number = 0;
  if (name == CUBLASLT_ALGO_CONFIG_ID) number = algorithm.id;
  if (name == CUBLASLT_ALGO_CONFIG_TILE_ID) number = algorithm.tile;
  if (name == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) number = algorithm.split;
  if (name == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID) number = algorithm.cluster;
  std::memcpy(value, &number, size);  // the lowest bytes come first
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*product*/,
                              const void* /*alpha*/, const void* /*a*/,
                              cublasLtMatrixLayout_t /*a_layout*/, const void* /*b*/,
                              cublasLtMatrixLayout_t /*b_layout*/, const void* /*beta*/,
                              const void* /*c*/, cublasLtMatrixLayout_t /*c_layout*/, void* /*d*/,
                              cublasLtMatrixLayout_t /*d_layout*/,
                              const cublasLtMatmulAlgo_t* opaque, void* /*workspace*/,
                              std::size_t bytes, cudaStream_t /*stream*/) {
  auto& ran = spillway::cuda::library().ran.emplace();
  std::memcpy(static_cast<void*>(&ran.algorithm), opaque, sizeof ran.algorithm);
  ran.workspace = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

namespace spillway::cuda {
namespace {

class MatmulAlgorithms : public testing::Test {
 protected:
  MatmulAlgorithms() { library() = {}; }

  static std::vector<std::string> names(const std::vector<MatmulAlgorithm>& all) {
    std::vector<std::string> names;
    for (const MatmulAlgorithm& each : all) names.push_back(each.name);
    return names;
  }
  static std::vector<std::string> names(const std::vector<AlgorithmInfo>& all) {
    std::vector<std::string> names;
    for (const AlgorithmInfo& each : all) names.push_back(each.name);
    return names;
  }
  [[nodiscard]] std::vector<MatmulAlgorithm> listed(bool bias) const {
    return matmul_algorithms(
        machine,
        {.rows = 8, .columns = 16, .inner = 32, .bias = bias, .purpose = "a product of tests"});
  }

  using Names = std::vector<std::string>;
  Machine machine{.max_workspace = 1_GiB};
  const LinearGeometry layer{.x = {.batch = 4, .image = {32, 1, 1}}, .features = 16, .bias = true};
};

TEST_F(MatmulAlgorithms, AreTheEightThatCublasExpectsToBeFastest) {
  for (std::uint64_t i = 0; i < 9; ++i) library().plain.push_back({.algorithm = {.id = 60 + i}});
  EXPECT_EQ(names(listed(/*bias=*/false)), (Names{"algo60", "algo61", "algo62", "algo63", "algo64",
                                                  "algo65", "algo66", "algo67"}));
  EXPECT_EQ(library().most_asked, 8);
}

TEST_F(MatmulAlgorithms, HaveNamesOfTheirSettings) {
  library().plain = {{.algorithm = {.id = 66, .tile = 18, .cluster = 5}},
                     {.algorithm = {.id = 21, .tile = 20, .split = 3}, .workspace = 64}};
  const std::vector<MatmulAlgorithm> all = listed(/*bias=*/false);
  EXPECT_EQ(names(all), (Names{"algo66_tile=18_cluster=5", "algo21_tile=20_split=3"}));
  EXPECT_EQ(all.back().workspace, 64_B);
}

// Nothing could tell two of one name apart.
TEST_F(MatmulAlgorithms, AreThoseThatRunEachOnce) {
  library().plain = {{.algorithm = {.id = 1}, .state = CUBLAS_STATUS_NOT_SUPPORTED},
                     {.algorithm = {.id = 2}},
                     {.algorithm = {.id = 2}, .workspace = 64},
                     {.algorithm = {.id = 3}}};
  EXPECT_EQ(names(listed(/*bias=*/false)), (Names{"algo2", "algo3"}));
}

TEST_F(MatmulAlgorithms, AddTheBiasIfAnyCan) {
  library().plain = {{.algorithm = {.id = 1}}};
  library().with_bias = {{.algorithm = {.id = 2}}};
  EXPECT_EQ(names(listed(/*bias=*/true)), Names{"algo2"});
  EXPECT_TRUE(listed(/*bias=*/true).front().adds_bias);
  library().with_bias.clear();
  EXPECT_EQ(names(listed(/*bias=*/true)), Names{"algo1"});
  EXPECT_FALSE(listed(/*bias=*/true).front().adds_bias);
}

TEST_F(MatmulAlgorithms, SayWhichProductHasNone) {
  EXPECT_EQ(test::refusal([&] { return listed(/*bias=*/true); }),
            "cuBLASLt has no algorithm for a product of tests: allow more workspace, or choose "
            "another precision");
}

TEST_F(MatmulAlgorithms, SplitNoSumsOnADeterministicMachine) {
  library().plain = {{.algorithm = {.id = 1}}};
  static_cast<void>(listed(/*bias=*/false));
  EXPECT_TRUE(library().reductions.empty());
  machine.deterministic = true;
  static_cast<void>(listed(/*bias=*/false));
  EXPECT_EQ(library().reductions, std::vector<std::uint32_t>{CUBLASLT_REDUCTION_SCHEME_NONE});
}

// The baseline of a task has the smallest workspace.
TEST_F(MatmulAlgorithms, OfALinearLayerBeginWithTheSmallestWorkspace) {
  library().plain = {{.algorithm = {.id = 1}, .workspace = 4096},
                     {.algorithm = {.id = 2}},
                     {.algorithm = {.id = 3}},
                     {.algorithm = {.id = 4}, .workspace = 256}};
  const Names by_workspace{"algo2", "algo3", "algo4", "algo1"};
  const LinearBackwardWeights weights{.geometry = layer};
  EXPECT_EQ(names(algorithms_of(machine, LinearForward{.geometry = layer})), by_workspace);
  EXPECT_EQ(names(algorithms_of(machine, LinearBackwardData{.geometry = layer})), by_workspace);
  EXPECT_EQ(names(algorithms_of(machine, weights)), by_workspace);
  // The sums of the biases' gradient are beside the product's workspace.
  const um::Bytes sums = algorithms_of(machine, weights).front().workspace;
  EXPECT_GT(sums, 0_B);
  EXPECT_EQ(algorithms_of(machine, weights).back().workspace, sums + 4096_B);
}

TEST_F(MatmulAlgorithms, RunByTheirNames) {
  library().plain = {{.algorithm = {.id = 7}, .workspace = 512},
                     {.algorithm = {.id = 7, .split = 2}, .workspace = 1024}};
  const LinearBackwardData op{.geometry = layer};
  alignas(256) std::array<std::byte, 256> memory{};
  const std::vector<std::byte*> operands(operand_count(op), memory.data());
  for (const AlgorithmInfo& algorithm : algorithms_of(machine, op)) {
    const std::unique_ptr<Kernel> kernel = make_kernel(machine, op, algorithm.name);
    library().ran.reset();
    kernel->run({.operands = operands, .workspace = memory.data()});
    ASSERT_TRUE(library().ran);
    EXPECT_EQ(um::Bytes{library().ran->workspace}, algorithm.workspace);
    EXPECT_EQ(library().ran->algorithm.split, algorithm.name == "algo7" ? 1U : 2U);
  }
}

}  // namespace
}  // namespace spillway::cuda
