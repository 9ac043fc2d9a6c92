// Writes what cuDNN knows of this machine's GPU. From this JSON plans are made where there is no
// GPU: write_device_properties >tests/golden/h200_device_properties.json
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "src/cuda/cudnn/cudnn_descriptor.h"
#include "um/cuda/cuda_device.h"
#include "um/error.h"

namespace spillway {
namespace {

// A handle of cuDNN's, for the thread's device.
class Handle {
 public:
  Handle() { cuda::check(cudnnCreate(&handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { static_cast<void>(cudnnDestroy(handle_)); }
  [[nodiscard]] cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

std::string properties_of(cudnnHandle_t handle) {
#if CUDNN_VERSION >= 90800
  cuda::CudnnDescriptor properties{CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR};
  properties.set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle);
  properties.finalize();
  std::int64_t size = 0;
  cuda::check_cudnn(cudnnBackendGetAttribute(properties.get(),
                                             CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                             CUDNN_TYPE_CHAR, 0, &size, nullptr));
  std::string text(static_cast<std::size_t>(size), ' ');
  cuda::check_cudnn(cudnnBackendGetAttribute(properties.get(),
                                             CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                             CUDNN_TYPE_CHAR, size, &size, text.data()));
  text.resize(text.find_last_not_of(std::string{"\0\n ", 3}) + 1);
  return text;
#else
  static_cast<void>(handle);
  throw um::Error{"cuDNN tells a GPU's properties from 9.8 on; build with a newer one"};
#endif
}

}  // namespace
}  // namespace spillway

int main() {
  try {
    const auto device = spillway::um::open_cuda_device(0);
    device->api().enter_thread();
    std::fprintf(stderr, "write_device_properties: %s\n", device->name().c_str());
    const spillway::Handle handle;
    std::printf("%s\n", spillway::properties_of(handle.get()).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_device_properties: %s\n", error.what());
    return 1;
  }
}
