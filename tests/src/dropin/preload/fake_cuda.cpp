// A libspillway_um_cuda.so with the host as GPU, which prints the streams that it records.
#include <cstdint>
#include <cstdio>
#include <memory>

#include "src/dropin/um_cuda_plugin.h"
#include "um/host/host_device.h"

namespace {

class FakeGpus final : public spillway::UmCudaPlugin {
 public:
  [[nodiscard]] spillway::DropInDevice open(int ordinal) const override {
    static int openings = 0;
    return {.device = std::make_unique<spillway::um::HostDevice>(),
            .record = [opening =
                           ++openings](void* stream) -> std::unique_ptr<const spillway::um::Event> {
              std::printf("gpu of opening %d: recorded stream %d\n", opening,
                          static_cast<int>(reinterpret_cast<std::intptr_t>(stream)));
              return nullptr;
            },
            .ordinal = ordinal};
  }
};

}  // namespace

extern "C" {

[[gnu::visibility("default")]] const char* spillway_um_cuda_build() { return SPILLWAY_BUILD; }

[[gnu::visibility("default")]] const spillway::UmCudaPlugin* spillway_um_cuda_plugin() {
  static const FakeGpus gpus;
  return &gpus;
}

}  // extern "C"
