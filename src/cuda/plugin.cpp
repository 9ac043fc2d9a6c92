// libspillway_cuda.so: the CUDA side as src/ops/cuda_plugin.h describes it.
#include <cstddef>
#include <memory>

#include "src/cuda/cuda_backend.h"
#include "src/cuda/ranks/device_communicator.h"
#include "src/ops/cuda_plugin.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/error.h"

namespace spillway::cuda {
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
