#include "src/cuda/open_context.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "src/cuda/cuda_backend.h"
#include "src/cuda/kernels/kernel_check.h"
#include "um/bytes.h"
#include "um/cuda/cuda_device.h"

namespace spillway::cuda {
namespace {

using um::Bytes;

// What a convolution or an attention may take beside its operands, as a part of the GPU's memory.
// More buys convolutions no time on the shapes tried, and cuDNN offers engines with gigabytes.
constexpr std::uint64_t kWorkspacePart = 16;

}  // namespace

ExecutionContext open_context(const CudaRequest& request) {
  const auto ordinal = static_cast<int>(request.ordinal);
  um::OpenCuda open = um::open_cuda(
      ordinal, {.is_shared = request.is_shared, .counts_faults = request.counts_faults});
  expect_kernels_for_this_gpu(open.device->facts());
  const Bytes memory = open.device->facts().memory;
  // Made before anything moves: where it fails, the stream still has its device at its end.
  auto backend = std::make_unique<CudaBackend>(
      open.compute->native(),
      CudaBackendOptions{.precision = request.precision,
                         .deterministic = request.deterministic,
                         .max_workspace = Bytes{memory.count() / kWorkspacePart},
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
