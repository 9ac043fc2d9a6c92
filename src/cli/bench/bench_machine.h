#pragma once

#include "src/bench/bench_machine.h"
#include "src/cli/flags/memory_flags.h"
#include "um/device.h"

namespace spillway::cli {

/// This machine as a bench file names it, with `device` and how it pages under `memory`.
[[nodiscard]] BenchMachine bench_machine(const um::Device& device, const MemoryFlags& memory);

}  // namespace spillway::cli
