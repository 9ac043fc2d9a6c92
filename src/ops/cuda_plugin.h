#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "src/ops/backend.h"
#include "src/ops/tensor.h"
#include "src/ranks/communicator.h"
#include "um/bytes.h"

namespace spillway {

/// Which GPU to train on, and how.
struct CudaRequest {
  std::size_t ordinal = 0;
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< use only kernels that give the same bits in each run
  bool counts_faults = false;  ///< counts page faults and evictions with CUPTI, which costs time
  /// The most unified memory at any time, and as a part of the memory that is free at the start.
  std::optional<um::Bytes> managed_limit;
  std::optional<double> managed_share;
};

/// The CUDA side of the program, in its own library (libspillway_cuda.so), so that the program
/// starts without CUDA and cuDNN. All objects made by it must be destroyed before the library is
/// unloaded.
class CudaPlugin {
 public:
  virtual ~CudaPlugin() = default;
  /// Returns the number of GPUs. Throws: um::Error, one sentence that says why there is none.
  [[nodiscard]] virtual std::size_t count_devices() const = 0;
  /// Throws: um::Error if the GPU does not exist, or if it or a library cannot be used.
  [[nodiscard]] virtual ExecutionContext open(const CudaRequest& request) const = 0;
  /// Returns a communicator for near memory between the GPUs of `ranks`; collective. `context`
  /// comes from open(). Requires: `context` and `ranks` outlive the result. Throws: um::Error, one
  /// sentence that says what to do, if two ranks use the same GPU or NCCL is missing.
  [[nodiscard]] virtual std::unique_ptr<Communicator> join_ranks(
      ExecutionContext& context, Communicator& ranks, const CommunicatorOptions& options) const = 0;
};

/// Symbols that the library exports with C linkage. The build string names version and compiler. If
/// it differs from the program's, the program calls nothing else, since the two share classes.
inline constexpr const char* kCudaBuildFunction = "spillway_cuda_build";
inline constexpr const char* kCudaPluginFunction = "spillway_cuda_plugin";
using CudaBuildFunction = const char* (*)();
using CudaPluginFunction = const CudaPlugin* (*)();

}  // namespace spillway
