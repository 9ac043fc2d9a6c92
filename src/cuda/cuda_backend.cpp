#include "src/cuda/cuda_backend.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "src/cuda/cudnn/attention_engines.h"
#include "src/cuda/cudnn/convolution.h"
#include "src/cuda/cudnn/cublas_matmul.h"
#include "src/cuda/cudnn/cudnn_descriptor.h"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/staged_batch.h"
#include "src/ops/far_kernel.h"
#include "um/bytes.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

// Largest workspace of a convolution or attention is the GPU's memory divided by this. Larger
// workspaces saved no time on the shapes tried, and cuDNN offers engines with gigabytes.
constexpr std::uint64_t kWorkspacePart = 16;

constexpr std::string_view kDefault = "default";

cudnnHandle_t make_cudnn() {
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle));
  return handle;
}

cublasLtHandle_t make_cublas() {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle));
  return handle;
}

// Returns where a part begins in its block, in bytes.
std::size_t part_offset(const ParameterLayout& layout, const ParameterPart& part) {
  return float_bytes(layout.cuts().range(part).begin).count();
}

}  // namespace

void CudaBackend::DestroyCudnn::operator()(cudnnHandle_t handle) const noexcept {
  (void)cudnnDestroy(handle);
}
void CudaBackend::DestroyCublas::operator()(cublasLtHandle_t handle) const noexcept {
  (void)cublasLtDestroy(handle);
}

CudaBackend::CudaBackend(cudaStream_t stream, const CudaBackendOptions& options)
    : cudnn_{make_cudnn()},
      cublas_{make_cublas()},
      engines_{std::make_unique<ConvolutionEngines>(
          CudnnTarget{cudnn_.get()}, EngineRules{.precision = options.precision,
                                                 .deterministic = options.deterministic,
                                                 .max_workspace = options.max_workspace})},
      attention_{
          std::make_unique<AttentionEngines>(CudnnTarget{cudnn_.get()}, options.max_workspace)},
      numbers_{std::make_unique<StepNumbers>(stream, *options.batch_memory)},
      batch_memory_{options.batch_memory},
      machine_{.stream = stream,
               .cudnn = cudnn_.get(),
               .cublas = cublas_.get(),
               .precision = options.precision,
               .deterministic = options.deterministic,
               .max_workspace = options.max_workspace,
               .engines = engines_.get(),
               .attention = attention_.get(),
               .numbers = numbers_.get()} {
  check(cudnnSetStream(cudnn_.get(), stream));
}

CudaBackend::~CudaBackend() = default;

um::Bytes CudaBackend::tensor_bytes(const TensorShape& shape) const {
  return Layout{machine_.precision}.tensor_bytes(shape);
}

um::Bytes CudaBackend::parameter_bytes(const ParameterSpec& spec) const {
  return ParameterLayout{machine_.precision, spec}.bytes();
}

std::size_t CudaBackend::parameter_parts(const ParameterSpec& spec, um::Bytes most) const {
  return ParameterLayout{machine_.precision, spec}.cuts().parts(most);
}

um::Bytes CudaBackend::parameter_part_bytes(const ParameterSpec& spec,
                                            const ParameterPart& part) const {
  return ParameterLayout{machine_.precision, spec}.part_bytes(part);
}

um::Bytes CudaBackend::saved_bytes(const Operation& operation) const {
  return std::visit(
      [&](const auto& op) -> um::Bytes {
        if constexpr (std::decay_t<decltype(op)>::kRow.saves) {
          return cuda::saved_bytes(machine_, op);
        }
        return {};
      },
      operation);
}

std::vector<AlgorithmInfo> CudaBackend::algorithms(const Operation& operation) const {
  return std::visit(
      [&](const auto& op) -> std::vector<AlgorithmInfo> {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (Op::kRow.has_algorithms) {
          return algorithms_of(machine_, op);
        } else {
          um::Bytes workspace;
          if constexpr (Op::kRow.workspace == Workspace::kCuda ||
                        Op::kRow.workspace == Workspace::kBoth) {
            workspace = workspace_of(machine_, op);
          }
          return {{.name = std::string{kDefault}, .workspace = workspace}};
        }
      },
      operation);
}

std::string CudaBackend::description() const {
  const std::size_t version = cudnnGetVersion();  // major * 10000 + minor * 100 + patch, in cuDNN 9
  int device = 0;
  um::check(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  um::check(cudaGetDeviceProperties(&properties, device));
  return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100) + ", cuBLASLt, " + properties.name + ", " +
         std::string{to_string(machine_.precision)} +
         (machine_.deterministic ? ", deterministic" : "");
}

FarUpdateSupport CudaBackend::far_update_support() const {
  return machine_.precision == Precision::kBf16 ? FarUpdateSupport::kNone
                                                : FarUpdateSupport::kOnRequest;
}

um::Bytes CudaBackend::smallest_page() const { return um::Bytes{2ULL << 20U}; }

um::Bytes CudaBackend::staged_bytes(const LoadBatch& operation) const {
  return StagedBatch{machine_.precision, operation}.bytes();
}

void CudaBackend::stage(const LoadBatch& operation, const Batch& batch,
                        std::span<std::byte> staged) const {
  StagedBatch{machine_.precision, operation}.fill(operation, batch, staged);
}

void CudaBackend::begin_step(const StepContext& context) const { numbers_->begin_step(context); }

std::unique_ptr<Kernel> CudaBackend::prepare_updates(
    std::span<const UpdateParameters> updates) const {
  return make_kernel(machine_, std::vector<UpdateParameters>{updates.begin(), updates.end()});
}

std::unique_ptr<FarKernel> CudaBackend::prepare_far(const UpdateParameters& update) const {
  if (far_update_support() == FarUpdateSupport::kNone) return nullptr;
  const ParameterLayout layout{machine_.precision, update.parameters};
  const FloatRange range = layout.cuts().range(update.part);
  const std::size_t of_weights = has_weights(update.parameters) ? layout.weight_count() : 0;
  const std::size_t decayed = decays_all(update.options) ? range.end : of_weights;
  return make_far_kernel(update, range, std::clamp(decayed, range.begin, range.end) - range.begin);
}

void CudaBackend::clear(um::Range block) const {
  um::check(cudaMemsetAsync(block.data(), 0, block.size(), machine_.stream));
}

std::unique_ptr<Kernel> CudaBackend::prepare(const Operation& operation,
                                             std::string_view algorithm) const {
  return std::visit(
      [&](const auto& op) -> std::unique_ptr<Kernel> {
        if constexpr (std::decay_t<decltype(op)>::kRow.has_algorithms) {
          return make_kernel(machine_, op, algorithm);
        } else {
          um::expects(algorithm == kDefault, "the algorithm is one of algorithms(operation)");
          return make_kernel(machine_, op);
        }
      },
      operation);
}

void CudaBackend::import_parameters(const ParameterSpec& spec, std::span<const float> values,
                                    std::span<std::byte* const> parts) const {
  const ParameterLayout layout{machine_.precision, spec};
  std::vector<std::byte> bytes(layout.bytes().count());
  import_block(machine_.precision, spec, values, bytes);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ParameterPart part{.index = i, .count = parts.size()};
    const std::byte* const from = bytes.data() + part_offset(layout, part);
    um::check(cudaMemcpyAsync(parts[i], from, layout.part_bytes(part).count(),
                              cudaMemcpyHostToDevice, machine_.stream));
  }
  um::check(cudaStreamSynchronize(machine_.stream));
}

void CudaBackend::export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                                    std::span<float> values) const {
  const ParameterLayout layout{machine_.precision, spec};
  std::vector<std::byte> bytes(float_bytes(layout.float_count()).count());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ParameterPart part{.index = i, .count = parts.size()};
    const um::Bytes floats = float_bytes(layout.cuts().range(part).count());
    um::check(cudaMemcpyAsync(bytes.data() + part_offset(layout, part), parts[i], floats.count(),
                              cudaMemcpyDeviceToHost, machine_.stream));
  }
  um::check(cudaStreamSynchronize(machine_.stream));
  export_block(machine_.precision, spec, bytes, values);
}

ExecutionContext open_context(const CudaRequest& request) {
  const auto ordinal = static_cast<int>(request.ordinal);
  um::OpenCuda open = um::open_cuda(ordinal, {.managed_limit = request.managed_limit,
                                              .managed_share = request.managed_share,
                                              .counts_faults = request.counts_faults});
  expect_kernels_for_this_gpu(open.device->facts());
  const um::Bytes memory = open.device->facts().memory;
  // Created before any move: if this throws, the stream is destroyed while its device still exists.
  auto backend = std::make_unique<CudaBackend>(
      open.compute->native(),
      CudaBackendOptions{.precision = request.precision,
                         .deterministic = request.deterministic,
                         .max_workspace = um::Bytes{memory.count() / kWorkspacePart},
                         .batch_memory = &open.device->batch_memory()});
  ExecutionContext context;
  context.precision = request.precision;
  context.deterministic = request.deterministic;
  context.device = std::move(open.device);
  context.compute = std::move(open.compute);
  context.backend = std::move(backend);
  return context;
}

}  // namespace spillway::cuda
