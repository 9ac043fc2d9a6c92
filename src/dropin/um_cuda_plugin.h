#pragma once

#include <functional>
#include <memory>

#include "um/device.h"
#include "um/stream.h"

namespace spillway {

/// A device of the drop-in library.
struct DropInDevice {
  /// Returns the program's stream behind the seam.
  using StreamOf = std::function<std::unique_ptr<um::ProgramStream>(void* stream)>;

  std::unique_ptr<um::Device> device;
  StreamOf stream_of;  ///< empty if the device has no streams; destroyed before the device
  int ordinal = -1;    ///< number of the GPU
};

/// The GPUs of the drop-in library, in a separate library (libspillway_um_cuda.so), so that the
/// drop-in also starts without CUDA.
class UmCudaPlugin {
 public:
  virtual ~UmCudaPlugin() = default;
  /// Throws: um::Error with advice when the GPU does not exist or cannot be used.
  [[nodiscard]] virtual DropInDevice open(int ordinal) const = 0;
};

/// The exported symbols, with C linkage.
inline constexpr const char* kUmCudaBuildFunction = "spillway_um_cuda_build";
inline constexpr const char* kUmCudaPluginFunction = "spillway_um_cuda_plugin";
using UmCudaPluginFunction = const UmCudaPlugin* (*)();

}  // namespace spillway
