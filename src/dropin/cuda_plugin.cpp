// libspillway_um_cuda.so: the GPUs, as src/dropin/um_cuda_plugin.h describes.
#include <memory>
#include <utility>

#include "src/dropin/um_cuda_plugin.h"
#include "um/cuda/cuda_device.h"

namespace spillway::dropin {
namespace {

class Plugin final : public UmCudaPlugin {
 public:
  [[nodiscard]] DropInDevice open(int ordinal) const override {
    std::unique_ptr<um::CudaDevice> device = um::open_cuda_device(ordinal);
    um::CudaDevice& gpu = *device;
    return {
        .device = std::move(device),
        .stream_of =
            [&gpu](void* stream) { return gpu.program_stream(static_cast<cudaStream_t>(stream)); },
        .ordinal = ordinal};
  }
};

}  // namespace
}  // namespace spillway::dropin

extern "C" {

[[gnu::visibility("default")]] const char* spillway_um_cuda_build() { return SPILLWAY_BUILD; }

[[gnu::visibility("default")]] const spillway::UmCudaPlugin* spillway_um_cuda_plugin() {
  static const spillway::dropin::Plugin plugin;
  return &plugin;
}

}  // extern "C"
