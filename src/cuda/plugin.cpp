// libspillway_cuda.so: the CUDA side as src/ops/cuda_plugin.h describes it.
#include "src/cuda/plugin.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "src/cuda/cuda_backend.h"
#include "src/cuda/kernels/launch.h"
#include "src/cuda/ranks/join_devices.h"
#include "src/ops/cuda_plugin.h"
#include "um/bytes.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

using um::Bytes;

// Largest workspace of a convolution or attention is the GPU's memory divided by this. Larger
// workspaces saved no time on the shapes tried, and cuDNN offers engines with gigabytes.
constexpr std::uint64_t kWorkspacePart = 16;

}  // namespace

ExecutionContext open_context(const CudaRequest& request) {
  const auto ordinal = static_cast<int>(request.ordinal);
  um::OpenCuda open = um::open_cuda(
      ordinal, {.is_shared = request.is_shared, .counts_faults = request.counts_faults});
  expect_kernels_for_this_gpu(open.device->facts());
  const Bytes memory = open.device->facts().memory;
  // Created before any move: if this throws, the stream is destroyed while its device still exists.
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

namespace {

class Plugin final : public CudaPlugin {
 public:
  [[nodiscard]] std::size_t count_devices() const override {
    const um::DriverAnswer answer = um::ask_driver();
    if (const auto reason = um::why_unusable(answer, 0)) throw um::Error{*reason};
    return static_cast<std::size_t>(answer.devices);
  }

  [[nodiscard]] ExecutionContext open(const CudaRequest& request) const override {
    return open_context(request);
  }

  [[nodiscard]] std::unique_ptr<Communicator> join_ranks(
      ExecutionContext& context, Communicator& ranks,
      const CommunicatorOptions& options) const override {
    return join_devices(dynamic_cast<um::CudaDevice&>(*context.device).api(), ranks, options);
  }
};

}  // namespace

}  // namespace spillway::cuda

extern "C" {

[[gnu::visibility("default")]] const char* spillway_cuda_build() { return SPILLWAY_BUILD; }

[[gnu::visibility("default")]] const spillway::CudaPlugin* spillway_cuda_plugin() {
  static const spillway::cuda::Plugin plugin;
  return &plugin;
}

}  // extern "C"
