// libspillway_cuda.so: the CUDA side as src/cuda_plugin.h describes it.
#include <memory>
#include <utility>

#include "src/cuda/cuda_backend.h"
#include "src/cuda/kernel_check.h"
#include "src/cuda_plugin.h"
#include "um/bytes.h"
#include "um/cuda/check.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/runtime_api.h"
#include "um/cuda/usability.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

using um::Bytes;

// What a convolution may take beside its operands, as a part of the GPU's memory. More buys no time
// on the shapes tried, and cuDNN offers engines with gigabytes.
constexpr std::uint64_t kWorkspacePart = 16;

class Plugin final : public CudaPlugin {
 public:
  [[nodiscard]] std::size_t count_devices() const override {
    const um::DriverAnswer answer = um::ask_driver();
    if (const auto reason = um::why_unusable(answer, 0)) throw um::Error{*reason};
    return static_cast<std::size_t>(answer.devices);
  }

  [[nodiscard]] Processor open(const CudaRequest& request) const override {
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
                           .most_workspace = Bytes{memory.count() / kWorkspacePart}});
    Processor processor;
    processor.device = std::move(open.device);
    processor.compute = std::move(open.compute);
    processor.backend = std::move(backend);
    // The current device is each thread's own; kernels are launched on this one.
    processor.compute->enqueue([ordinal] { um::check(cudaSetDevice(ordinal)); });
    processor.compute->synchronize();
    return processor;
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
