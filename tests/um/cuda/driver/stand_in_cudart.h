#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::um::stand_in {

/// The properties of the stand-in runtime; by default it has two GPUs.
struct Machine {
  int devices = 2;
  int driver_version = 13000;
  std::size_t free = std::size_t{3} << 30U;
  std::size_t total = std::size_t{4} << 30U;
  bool has_concurrent_managed_access = true;
  bool is_integrated = false;
  bool has_fired = true;                                          ///< state reported for events
  float elapsed = 1.5F;                                           ///< milliseconds between any two
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;  ///< state reported for streams
};

/// Resets all calls, failures and memory.
void reset(const Machine& machine = {});
[[nodiscard]] Machine& machine();

/// Makes each call of this function fail from now on; "" stops this.
void fail(const std::string& function, cudaError_t with);

/// Returns the calls since the last call of this function. "cudaMalloc 4096 on 1" comes from a
/// thread with current device 1. Streams and events are named by number: s1, e2. Queries of the
/// current device, the last error or texts are not recorded.
[[nodiscard]] std::vector<std::string> take_calls();

/// Returns the number of streams, events, graphs and allocations that still exist.
[[nodiscard]] std::size_t live_objects();
/// Returns the calling thread's device, like cudaGetDevice(), without recording a call.
[[nodiscard]] int current_device();
/// Returns the calling thread's last error without clearing it.
[[nodiscard]] cudaError_t last_error();
/// Returns the calling thread's stream capture mode.
[[nodiscard]] cudaStreamCaptureMode capture_mode();

}  // namespace spillway::um::stand_in
