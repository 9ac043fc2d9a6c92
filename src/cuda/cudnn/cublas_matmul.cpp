#include "src/cuda/cudnn/cublas_matmul.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kMaxWorkspace{32U << 20U};

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

}  // namespace

Matmul::Matmul(const Machine& machine, MatmulProblem problem)
    : machine_{machine}, problem_{std::move(problem)} {
  adds_bias_ = problem_.bias && find_algorithm(/*adds_bias=*/true);
  if (!adds_bias_ && !find_algorithm(/*adds_bias=*/false)) {
    throw um::Error{"cuBLASLt has no algorithm for " + problem_.purpose +
                    ": allow more workspace, or choose another precision"};
  }
}

bool Matmul::find_algorithm(bool adds_bias) {
  // Only the presence of a bias matters here; its address is set later.
  alignas(256) static constexpr float kAnyBias = 0;
  const Descriptors d = describe(machine_, problem_, adds_bias, &kAnyBias);
  const Owned<cublasLtMatmulPreference_t> preferred = preference(machine_, problem_);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      machine_.cublas, d.operation.get(), d.first.get(), d.second.get(), d.result.get(),
      d.result.get(), preferred.get(), 1, &algorithm_, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check_for(problem_, status);
  return count > 0 && algorithm_.state == CUBLAS_STATUS_SUCCESS;
}

void Matmul::run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* d,
                 std::byte* workspace, bool adds) const {
  constexpr float kOne = 1;
  const float kept = adds ? 1 : 0;
  const Descriptors descriptors = describe(machine_, problem_, adds_bias_, bias);
  check_for(problem_,
            cublasLtMatmul(machine_.cublas, descriptors.operation.get(), &kOne, b,
                           descriptors.first.get(), a, descriptors.second.get(), &kept, d,
                           descriptors.result.get(), d, descriptors.result.get(), &algorithm_.algo,
                           workspace, algorithm_.workspaceSize, machine_.stream));
}

}  // namespace spillway::cuda
