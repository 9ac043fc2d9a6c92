#pragma once

#include <cuda_runtime_api.h>

namespace spillway::processor {

/// Sets the result of all later calls of cudaFuncGetAttributes().
void set_function_status(cudaError_t status);

/// From construction to destruction, copies and fills are done as late as possible: when an event
/// recorded after them, or the device, is waited for.
class LateCopies {
 public:
  LateCopies();
  LateCopies(const LateCopies&) = delete;
  LateCopies& operator=(const LateCopies&) = delete;
  ~LateCopies();
};

}  // namespace spillway::processor
