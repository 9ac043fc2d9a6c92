#pragma once

#include "src/bench/machine.h"
#include "src/cli/memory_options.h"
#include "um/device.h"

namespace spillway::cli {

/// This machine as a bench file names it, with `device` and how it pages under `memory`.
[[nodiscard]] BenchMachine bench_machine(const um::Device& device, const MemoryOptions& memory);

}  // namespace spillway::cli
