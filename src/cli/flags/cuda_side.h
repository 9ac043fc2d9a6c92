#pragma once

#include <string>

#include "src/ops/cuda_plugin.h"
#include "um/error.h"

namespace spillway::cli {

/// True where an NVIDIA driver is installed; says nothing about a GPU.
[[nodiscard]] bool has_nvidia_driver();

/// Loads the CUDA side, libspillway_cuda.so, from beside the program, from where it is installed,
/// or from where the system looks for libraries; it stays loaded to the end of the process. Throws:
/// um::Error, one sentence that says what to do, when it is not there, cannot be loaded, or is of
/// another build.
[[nodiscard]] const CudaPlugin& load_cuda_side();

/// What `work` returns, which the user wants CUDA for. Throws: um::Error that says so before the
/// reason.
template <typename Work>
auto use_cuda(const Work& work) {
  try {
    return work();
  } catch (const um::Error& error) {
    throw um::Error{std::string{"CUDA cannot be used: "} + error.what()};
  }
}

}  // namespace spillway::cli
