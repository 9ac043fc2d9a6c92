#pragma once

#include <functional>
#include <memory>

#include "um/device.h"
#include "um/stream.h"

namespace spillway {

/// A device of the drop-in library.
struct DropInDevice {
  /// An event that fires when the work so far of a stream of the program's has ended.
  using RecordEvent = std::function<std::unique_ptr<const um::Event>(void* stream)>;

  std::unique_ptr<um::Device> device;
  RecordEvent record;  ///< empty: the device has no streams. Ends before the device.
  int ordinal = -1;    ///< of a GPU
};

/// The GPUs of the drop-in library, in a library of their own (libspillway_um_cuda.so), so that the
/// drop-in starts where CUDA is absent.
class UmCudaPlugin {
 public:
  virtual ~UmCudaPlugin() = default;
  /// Throws: um::Error, one sentence that says what to do, when there is no such GPU or it cannot
  /// be used.
  [[nodiscard]] virtual DropInDevice open(int ordinal) const = 0;
};

/// What the library exports, with C linkage.
inline constexpr const char* kUmCudaBuildFunction = "spillway_um_cuda_build";
inline constexpr const char* kUmCudaPluginFunction = "spillway_um_cuda_plugin";
using UmCudaPluginFunction = const UmCudaPlugin* (*)();

}  // namespace spillway
