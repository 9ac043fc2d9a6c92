#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "src/cuda/cuda_backend.h"
#include "tests/gpu.h"
#include "tests/src/cuda/operation_runner.h"

namespace spillway::cuda {

/// Runs kernels, including cuDNN's and cuBLASLt's, for tests of operations. All tests of a suite
/// share the backends, so that cuDNN is asked only once per convolution.
class KernelRunner : public OperationRunner {
 public:
  static void TearDownTestSuite() { shared_.reset(); }

 protected:
  void SetUp() override {
    testing::require_gpu();
    if (IsSkipped() || HasFatalFailure()) return;
    OperationRunner::SetUp();
  }
  /// Returns the backend with cuDNN and cuBLASLt, which take a while to start.
  [[nodiscard]] const CudaBackend& backend() { return begun(&Shared::backend, false); }

  void run_with(std::string_view algorithm, const Operation& operation,
                const std::vector<Block*>& operands) {
    run_by(backend(), algorithm, operation, operands);
  }
  /// Fails the test unless each algorithm of a deterministic backend gives the same bits twice.
  void expect_same_bits(const Operation& operation, Block& a, Block& b, Block first, Block second) {
    const CudaBackend& backend = begun(&Shared::deterministic, true);
    const std::vector<AlgorithmInfo> algorithms = backend.algorithms(operation);
    ASSERT_FALSE(algorithms.empty());
    for (const AlgorithmInfo& algorithm : algorithms) {
      run_by(backend, algorithm.name, operation, {&a, &b, &first});
      run_by(backend, algorithm.name, operation, {&a, &b, &second});
      EXPECT_EQ(first.bytes(), second.bytes()) << algorithm.name;
    }
  }

 private:
  // Tests synchronize the device after each kernel, on any stream.
  struct Shared {
    Shared() { um::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared() {
      backend.reset();
      deterministic.reset();
      (void)cudaStreamDestroy(stream);
    }
    cudaStream_t stream = nullptr;
    std::optional<CudaBackend> backend;
    std::optional<CudaBackend> deterministic;
  };

  const CudaBackend& begun(std::optional<CudaBackend> Shared::*which, bool deterministic) const {
    if (!shared_) shared_.emplace();
    std::optional<CudaBackend>& backend = *shared_.*which;
    if (!backend) {
      backend.emplace(shared_->stream, CudaBackendOptions{.precision = machine().precision,
                                                          .deterministic = deterministic,
                                                          .max_workspace = um::Bytes{1U << 30U}});
    }
    return *backend;
  }
  static void run_by(const CudaBackend& backend, std::string_view algorithm,
                     const Operation& operation, const std::vector<Block*>& operands) {
    const std::vector<AlgorithmInfo> all = backend.algorithms(operation);
    const auto chosen = std::ranges::find(all, algorithm, &AlgorithmInfo::name);
    const auto kernel = backend.prepare(operation, algorithm);
    backend.begin_step({});
    run_kernel(*kernel, chosen->workspace, operands, {}, false);
  }

  static inline std::optional<Shared> shared_;
};

}  // namespace spillway::cuda
