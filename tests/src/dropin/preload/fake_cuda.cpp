// A libspillway_um_cuda.so with the host as GPU, which prints the streams that it records and those
// that wait for near memory.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>

#include "src/dropin/um_cuda_plugin.h"
#include "um/host/host_device.h"

namespace {

class FakeStream final : public spillway::um::ProgramStream {
 public:
  FakeStream(int opening, void* stream)
      : opening_{opening}, stream_{static_cast<int>(reinterpret_cast<std::intptr_t>(stream))} {}

  [[nodiscard]] bool can_discard() const override { return false; }
  [[nodiscard]] std::unique_ptr<const spillway::um::Event> record(
      std::span<std::byte> /*dead*/) override {
    std::printf("gpu of opening %d: recorded stream %d\n", opening_, stream_);
    return nullptr;
  }
  void join(const std::function<void()>& call) override {
    std::printf("gpu of opening %d: stream %d waits for near memory\n", opening_, stream_);
    call();
  }

 private:
  int opening_;
  int stream_;
};

class FakeGpus final : public spillway::UmCudaPlugin {
 public:
  [[nodiscard]] spillway::DropInDevice open(int ordinal) const override {
    static int openings = 0;
    return {
        .device = std::make_unique<spillway::um::HostDevice>(),
        .stream_of = [opening = ++openings](
                         void* stream) { return std::make_unique<FakeStream>(opening, stream); },
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
