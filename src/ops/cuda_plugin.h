#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/ops/backend.h"
#include "src/ops/tensor.h"
#include "src/ranks/communicator.h"

namespace spillway {

/// Which GPU to train on, and how.
struct CudaRequest {
  std::size_t ordinal = 0;
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< only kernels that give the same bits each time
  bool counts_faults = false;  ///< page faults and evictions, by CUPTI; it costs time
  /// Others use the GPU too: at most 16 GiB of unified memory, and at most a quarter of what is
  /// free, is allocated at any time.
  bool is_shared = false;
};

/// The CUDA side of the program, in a library of its own (libspillway_cuda.so), so that the program
/// starts where CUDA and cuDNN are absent. What it makes must end before the program unloads it.
class CudaPlugin {
 public:
  virtual ~CudaPlugin() = default;
  /// How many GPUs there are. Throws: um::Error, one sentence that says why there is none.
  [[nodiscard]] virtual std::size_t count_devices() const = 0;
  /// Throws: um::Error when there is no such GPU, or it or a library cannot be used.
  [[nodiscard]] virtual ExecutionContext open(const CudaRequest& request) const = 0;
  /// What exchanges near memory between the GPUs of `ranks`, of which this one trains on `context`,
  /// of open(). All of them call it. Both outlive it. Throws: um::Error, one sentence that says
  /// what to do, where two of them have one GPU, or there is no NCCL.
  [[nodiscard]] virtual std::unique_ptr<Communicator> join_ranks(
      ExecutionContext& context, Communicator& ranks, const CommunicatorOptions& options) const = 0;
};

/// What the library exports, with C linkage. The build says version and compiler: a program calls
/// nothing else of a library whose build is not its own, since the two share classes.
inline constexpr const char* kCudaBuildFunction = "spillway_cuda_build";
inline constexpr const char* kCudaPluginFunction = "spillway_cuda_plugin";
using CudaBuildFunction = const char* (*)();
using CudaPluginFunction = const CudaPlugin* (*)();

}  // namespace spillway
