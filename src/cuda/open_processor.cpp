#include "src/cuda/open_processor.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "src/cuda/cuda_backend.h"
#include "src/cuda/kernel_check.h"
#include "um/bytes.h"
#include "um/cuda/check.h"
#include "um/cuda/cuda_device.h"

namespace spillway::cuda {
namespace {

using um::Bytes;

// What a convolution may take beside its operands, as a part of the GPU's memory. More buys no time
// on the shapes tried, and cuDNN offers engines with gigabytes.
constexpr std::uint64_t kWorkspacePart = 16;

}  // namespace

Processor open_processor(const CudaRequest& request) {
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
                         .most_workspace = Bytes{memory.count() / kWorkspacePart},
                         .batch_memory = &open.device->batch_memory()});
  Processor processor;
  processor.device = std::move(open.device);
  processor.compute = std::move(open.compute);
  processor.backend = std::move(backend);
  // The current device is each thread's own; kernels are launched on this one.
  processor.compute->enqueue([ordinal] { um::check(cudaSetDevice(ordinal)); });
  processor.compute->synchronize();
  return processor;
}

}  // namespace spillway::cuda
