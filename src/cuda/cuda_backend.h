#pragma once

#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/backend.h"
#include "src/ops/cuda_plugin.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// Settings of a CudaBackend.
struct CudaBackendOptions {
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< use only engines that give the same bits in each run
  um::Bytes max_workspace;     ///< cuDNN algorithms with larger workspaces are not offered
  /// Memory of the batches and of what differs between steps, preferably pinned; outlives the
  /// backend.
  std::pmr::memory_resource* batch_memory = std::pmr::new_delete_resource();
};

/// A backend for the current CUDA device, with cuDNN, cuBLASLt and our own kernels.
class CudaBackend final : public Backend {
 public:
  /// Submits all work to `stream`, which outlives the backend. Throws: um::CudaError or
  /// LibraryError if the device or a library cannot be used.
  CudaBackend(cudaStream_t stream, const CudaBackendOptions& options);
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;
  ~CudaBackend() override;

  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const override;
  [[nodiscard]] um::Bytes parameter_bytes(const ParameterSpec& spec) const override;
  [[nodiscard]] std::size_t parameter_parts(const ParameterSpec& spec,
                                            um::Bytes most) const override;
  [[nodiscard]] um::Bytes parameter_part_bytes(const ParameterSpec& spec,
                                               const ParameterPart& part) const override;
  [[nodiscard]] um::Bytes saved_bytes(const Operation& operation) const override;
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override;
  /// Returns kOnRequest, but not in bf16, since far updates do not make the bfloat16 copy that
  /// kernels read.
  [[nodiscard]] FarUpdateSupport far_update_support() const override;
  [[nodiscard]] um::Bytes smallest_page() const override;
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare(const Operation& operation,
                                                std::string_view algorithm) const override;
  [[nodiscard]] um::Bytes staged_bytes(const LoadBatch& operation) const override;
  void stage(const LoadBatch& operation, const Batch& batch,
             std::span<std::byte> staged) const override;
  [[nodiscard]] std::pmr::memory_resource& batch_memory() const override { return *batch_memory_; }
  void begin_step(const StepContext& context) const override;
  [[nodiscard]] std::unique_ptr<Kernel> prepare_updates(
      std::span<const UpdateParameters> updates) const override;
  /// Returns a kernel that runs on the CPU; its bits may differ from those of the device's kernel.
  [[nodiscard]] std::unique_ptr<FarKernel> prepare_far(
      const UpdateParameters& update) const override;
  void clear(um::Range block) const override;
  /// Copy after all work enqueued before, and return when the copies are done. `parts` are device
  /// memory.
  void import_parameters(const ParameterSpec& spec, std::span<const float> values,
                         std::span<std::byte* const> parts) const override;
  void export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                         std::span<float> values) const override;

 private:
  struct DestroyCudnn {
    void operator()(cudnnHandle_t handle) const noexcept;
  };
  struct DestroyCublas {
    void operator()(cublasLtHandle_t handle) const noexcept;
  };

  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, DestroyCudnn> cudnn_;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, DestroyCublas> cublas_;
  std::unique_ptr<ConvolutionEngines> engines_;
  std::unique_ptr<AttentionEngines> attention_;
  std::unique_ptr<StepNumbers> numbers_;
  std::pmr::memory_resource* batch_memory_;
  Machine machine_;
};

/// Opens a GPU with its kernels and stream; the calling thread uses it from then on. Throws:
/// um::Error if the GPU does not exist, or if it or a library cannot be used.
[[nodiscard]] ExecutionContext open_context(const CudaRequest& request);

}  // namespace spillway::cuda
