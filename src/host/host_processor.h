#pragma once

#include <cstddef>
#include <memory>

#include "src/host/threads.h"
#include "src/processor.h"
#include "um/device.h"

namespace spillway::host {

/// A processor whose kernels are oneDNN's, with its stream and its team of threads started. Throws:
/// um::Error when there are not so many threads.
[[nodiscard]] Processor open_processor(std::unique_ptr<um::Device> device,
                                       std::size_t threads = usable_cpus());

}  // namespace spillway::host
