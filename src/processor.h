#pragma once

#include <cstddef>
#include <memory>

#include "src/backend.h"
#include "um/device.h"
#include "um/stream.h"

namespace spillway {

/// Something to train on: a device, the kernels that run on it, and the stream they run on.
struct Processor {
  std::size_t threads = 1;  ///< of the kernels: bits depend on it
  std::unique_ptr<um::Device> device;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<um::Stream> compute;  // last: its work uses the others
};

}  // namespace spillway
