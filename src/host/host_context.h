#pragma once

#include <cstddef>
#include <memory>

#include "src/host/layout/threads.h"
#include "src/ops/backend.h"
#include "um/device.h"

namespace spillway::host {

/// A processor whose kernels are oneDNN's, with its stream and its team of threads started. The
/// context only records `deterministic`: the host's kernels always are.
/// Throws: um::Error when there are not so many threads, or the kernels do not have `precision`.
[[nodiscard]] ExecutionContext open_context(std::unique_ptr<um::Device> device,
                                            std::size_t threads = usable_cpus(),
                                            bool deterministic = false,
                                            Precision precision = Precision::kFp32);

}  // namespace spillway::host
