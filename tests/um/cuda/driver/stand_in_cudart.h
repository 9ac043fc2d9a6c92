#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::um::stand_in {

/// What the stand-in for CUDA's runtime is: two GPUs, unless a test says otherwise.
struct Machine {
  int devices = 2;
  int driver_version = 13000;
  std::size_t free = std::size_t{3} << 30U;
  std::size_t total = std::size_t{4} << 30U;
  bool has_concurrent_managed_access = true;
  bool has_fired = true;                                          ///< what events say
  float elapsed = 1.5F;                                           ///< milliseconds between any two
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;  ///< what streams say
};

/// Begins anew, without calls, failures and memory.
void reset(const Machine& machine = {});
[[nodiscard]] Machine& machine();

/// Each call of this function fails from now on; none for "".
void fail(const std::string& function, cudaError_t with);

/// The calls since the last one of this: "cudaMalloc 4096 on 1" is of a thread whose current device
/// is 1. Streams and events are named by their number: s1, e2. What only asks for the current
/// device, for the last error or for words is not noted.
[[nodiscard]] std::vector<std::string> take_calls();

/// Streams, events, graphs and allocations that have not been given back.
[[nodiscard]] std::size_t live_objects();
/// The calling thread's, as cudaGetDevice() has it; takes no note.
[[nodiscard]] int current_device();
/// What cudaGetLastError() would return to the calling thread; does not forget it.
[[nodiscard]] cudaError_t last_error();
/// How the calling thread's calls count as part of captures.
[[nodiscard]] cudaStreamCaptureMode capture_mode();

}  // namespace spillway::um::stand_in
