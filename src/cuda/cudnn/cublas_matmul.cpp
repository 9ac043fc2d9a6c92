#include "src/cuda/cudnn/cublas_matmul.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kMaxWorkspace{32U << 20U};
// The profiler measures each.
constexpr int kMostProducts = 8;

struct Destroy {
  void operator()(cublasLtMatmulDesc_t d) const noexcept { (void)cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayout_t d) const noexcept { (void)cublasLtMatrixLayoutDestroy(d); }
  void operator()(cublasLtMatmulPreference_t d) const noexcept {
    (void)cublasLtMatmulPreferenceDestroy(d);
  }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy>;

void check_for(const MatmulProblem& problem, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw um::Error{"cuBLASLt cannot run " + problem.purpose + ": " +
                  cublasLtGetStatusString(status)};
}

template <class T>
void set(const MatmulProblem& problem, cublasLtMatmulDesc_t descriptor,
         cublasLtMatmulDescAttributes_t name, const T& value) {
  check_for(problem, cublasLtMatmulDescSetAttribute(descriptor, name, &value, sizeof value));
}
template <class T>
void set(const MatmulProblem& problem, cublasLtMatmulPreference_t descriptor,
         cublasLtMatmulPreferenceAttributes_t name, const T& value) {
  check_for(problem, cublasLtMatmulPreferenceSetAttribute(descriptor, name, &value, sizeof value));
}

// Columns are `stride` elements apart; 0 means dense.
Owned<cublasLtMatrixLayout_t> layout(const MatmulProblem& problem, cudaDataType_t type,
                                     std::size_t rows, std::size_t columns,
                                     std::size_t stride = 0) {
  cublasLtMatrixLayout_t raw = nullptr;
  check_for(problem,
            cublasLtMatrixLayoutCreate(&raw, type, rows, columns,
                                       static_cast<std::int64_t>(stride == 0 ? rows : stride)));
  return Owned<cublasLtMatrixLayout_t>{raw};
}

// cuBLASLt is column-major and sees a row-major matrix as its transpose, so the product is D^T =
// B^T A^T. Its first operand is our B, its second our A. A matrix stored transposed must be
// transposed by cuBLASLt.
struct Descriptors {
  Owned<cublasLtMatmulDesc_t> operation;
  Owned<cublasLtMatrixLayout_t> first;
  Owned<cublasLtMatrixLayout_t> second;
  Owned<cublasLtMatrixLayout_t> result;
};

Descriptors describe(const Machine& machine, const MatmulProblem& problem, bool adds_bias,
                     const void* bias) {
  const cudaDataType_t type = machine.precision == Precision::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
  const cublasComputeType_t compute =
      machine.precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t raw = nullptr;
  check_for(problem, cublasLtMatmulDescCreate(&raw, compute, CUDA_R_32F));
  Owned<cublasLtMatmulDesc_t> operation{raw};
  const cublasOperation_t first = problem.b_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = problem.a_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(problem, raw, CUBLASLT_MATMUL_DESC_TRANSA, first);
  set(problem, raw, CUBLASLT_MATMUL_DESC_TRANSB, second);
  if (adds_bias) {
    set(problem, raw, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(problem, raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  const std::size_t rows = problem.rows;
  const std::size_t columns = problem.columns;
  const std::size_t inner = problem.inner;
  return {.operation = std::move(operation),
          .first = problem.b_is_transposed ? layout(problem, type, inner, columns)
                                           : layout(problem, type, columns, inner),
          .second = problem.a_is_transposed ? layout(problem, type, rows, inner, problem.a_stride)
                                            : layout(problem, type, inner, rows, problem.a_stride),
          .result = layout(problem, problem.d_is_float ? CUDA_R_32F : type, columns, rows)};
}

Owned<cublasLtMatmulPreference_t> preference(const Machine& machine, const MatmulProblem& problem) {
  constexpr std::uint32_t kAlignment = 16;
  cublasLtMatmulPreference_t raw = nullptr;
  check_for(problem, cublasLtMatmulPreferenceCreate(&raw));
  Owned<cublasLtMatmulPreference_t> owned{raw};
  set(problem, raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      std::uint64_t{std::min(machine.max_workspace, kMaxWorkspace).count()});
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(problem, raw, name, kAlignment);
  }
  if (machine.deterministic) {
    set(problem, raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
  }
  return owned;
}

template <class T>
T setting(const MatmulProblem& problem, const cublasLtMatmulAlgo_t& algorithm,
          cublasLtMatmulAlgoConfigAttributes_t which) {
  T value{};
  std::size_t written = 0;
  check_for(problem, cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value,
                                                          &written));
  return value;
}

std::string name_of(const MatmulProblem& problem, const cublasLtMatmulAlgo_t& algorithm) {
  const auto of = [&]<class T>(cublasLtMatmulAlgoConfigAttributes_t which, T /*type*/) {
    return static_cast<std::int64_t>(setting<T>(problem, algorithm, which));
  };
  std::string name = "algo" + std::to_string(of(CUBLASLT_ALGO_CONFIG_ID, std::int32_t{}));
  const auto add = [&](const char* key, std::int64_t value, std::int64_t usual = 0) {
    if (value != usual) name += std::string{"_"} + key + "=" + std::to_string(value);
  };
  add("tile", of(CUBLASLT_ALGO_CONFIG_TILE_ID, std::uint32_t{}));
  add("stages", of(CUBLASLT_ALGO_CONFIG_STAGES_ID, std::uint32_t{}));
  add("split", of(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{}), 1);
  add("reduction", of(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, std::uint32_t{}));
  add("swizzle", of(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, std::uint32_t{}));
  add("custom", of(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, std::uint32_t{}));
  add("inner", of(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, std::uint16_t{}));
  add("cluster", of(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, std::uint16_t{}));
  return name;
}

// Returns no algorithm if cuBLASLt has none.
std::vector<MatmulAlgorithm> list(const Machine& machine, const MatmulProblem& problem,
                                  bool adds_bias) {
  // Only the presence of a bias matters here; its address is set later.
  alignas(256) static constexpr float kAnyBias = 0;
  const Descriptors d = describe(machine, problem, adds_bias, &kAnyBias);
  const Owned<cublasLtMatmulPreference_t> preferred = preference(machine, problem);
  std::array<cublasLtMatmulHeuristicResult_t, kMostProducts> results{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      machine.cublas, d.operation.get(), d.first.get(), d.second.get(), d.result.get(),
      d.result.get(), preferred.get(), kMostProducts, results.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_for(problem, status);
  std::vector<MatmulAlgorithm> all;
  for (const cublasLtMatmulHeuristicResult_t& result :
       std::span{results}.first(static_cast<std::size_t>(count))) {
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    std::string name = name_of(problem, result.algo);
    if (std::ranges::find(all, name, &MatmulAlgorithm::name) != all.end()) continue;
    all.push_back({.name = std::move(name),
                   .algorithm = result.algo,
                   .workspace = um::Bytes{result.workspaceSize},
                   .adds_bias = adds_bias});
  }
  return all;
}

MatmulAlgorithm named(std::vector<MatmulAlgorithm> all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &MatmulAlgorithm::name);
  um::expects(found != all.end(), "the algorithm is one of algorithms(operation)");
  return std::move(*found);
}

}  // namespace

std::vector<MatmulAlgorithm> matmul_algorithms(const Machine& machine,
                                               const MatmulProblem& problem) {
  for (const bool adds_bias : {true, false}) {
    if (adds_bias && !problem.bias) continue;
    std::vector<MatmulAlgorithm> all = list(machine, problem, adds_bias);
    if (!all.empty()) return all;
  }
  throw um::Error{"cuBLASLt has no algorithm for " + problem.purpose +
                  ": allow more workspace, or choose another precision"};
}

Matmul::Matmul(const Machine& machine, MatmulProblem problem)
    : machine_{machine},
      problem_{std::move(problem)},
      algorithm_{matmul_algorithms(machine_, problem_).front()} {}

Matmul::Matmul(const Machine& machine, MatmulProblem problem, std::string_view algorithm)
    : machine_{machine},
      problem_{std::move(problem)},
      algorithm_{named(matmul_algorithms(machine_, problem_), algorithm)} {}

void Matmul::run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* d,
                 std::byte* workspace, bool adds) const {
  constexpr float kOne = 1;
  const float kept = adds ? 1 : 0;
  const Descriptors descriptors = describe(machine_, problem_, algorithm_.adds_bias, bias);
  check_for(problem_, cublasLtMatmul(machine_.cublas, descriptors.operation.get(), &kOne, b,
                                     descriptors.first.get(), a, descriptors.second.get(), &kept, d,
                                     descriptors.result.get(), d, descriptors.result.get(),
                                     &algorithm_.algorithm, workspace, algorithm_.workspace.count(),
                                     machine_.stream));
}

}  // namespace spillway::cuda
