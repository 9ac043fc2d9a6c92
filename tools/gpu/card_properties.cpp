// Writes what cuDNN knows of a GPU, as the JSON from which plans are made where there is none
// (tests/golden/h200_device_properties.json): card_properties --out FILE [--device N].
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "src/cuda/cudnn/cudnn_descriptor.h"
#include "src/cuda/cudnn/library_check.h"
#include "um/cuda/cuda_device.h"
#include "um/error.h"

namespace spillway::gpu {
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

void write(int ordinal, const std::string& path) {
  // Makes the GPU the thread's.
  const auto device = um::open_cuda_device(ordinal);
  std::fprintf(stderr, "card_properties: %s\n", device->name().c_str());
  const Handle handle;
  std::ofstream file{path};
  file << properties_of(handle.get()) << "\n";
  if (!file.flush()) throw um::Error{"cannot write " + path};
}

}  // namespace
}  // namespace spillway::gpu

int main(int argc, char** argv) {
  try {
    std::string out;
    int device = 0;
    CLI::App app{"Writes cuDNN's properties of a GPU"};
    app.add_option("--out", out, "File to write")->required();
    app.add_option("--device", device, "Number of the GPU")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    spillway::gpu::write(device, out);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "card_properties: %s\n", error.what());
    return 1;
  }
}
