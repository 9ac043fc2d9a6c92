// Launches of our kernels on the emulated GPU, and what they access. Compiled with the headers of
// tests/src/cuda/processor, as the kernels are.
#include <exception>
#include <string>
#include <utility>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"
#include "tests/src/cuda/processor/grid_run.h"
#include "tests/src/cuda/processor/memory_watch.h"

namespace spillway::emulated {

// Declared anew: card.h needs CUDA's own headers.
void note_kernel_access(const void* begin, std::size_t size, bool writes);

std::string work_name(const Work& work) {
  if (work.kernel == nullptr) return work.name;
  return work.name + " " + processor::function_name(work.kernel);
}

}  // namespace spillway::emulated

namespace spillway::processor {

int launch(CUstream_st* stream, const Launch& launch, std::function<void()> thread) {
  if (const int error = emulated::begin_call("cudaLaunchKernelExC"); error != 0) return error;
  const auto compute = [launch, thread = std::move(thread)] {
    try {
      run_grid(launch, thread);
    } catch (const std::exception& fault) {
      emulated::report_mistake(fault.what());
    }
  };
  return emulated::enqueue(
      stream, {.name = "kernel", .accesses = {}, .compute = compute, .kernel = launch.kernel});
}

void note_access(const void* address, std::size_t size, std::size_t /*alignment*/, bool writes,
                 const void* /*code*/) {
  emulated::note_kernel_access(address, size, writes);
}

Touched touched_by_last_launch() { return {}; }  // for the tests of kernels alone

}  // namespace spillway::processor
