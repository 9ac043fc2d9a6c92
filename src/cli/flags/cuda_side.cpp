#include "src/cli/flags/cuda_side.h"

#include <dlfcn.h>

#include <string>

#include "src/plugin/plug_in.h"

namespace spillway::cli {

bool has_nvidia_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

const CudaPlugin& load_cuda_side() {
  const std::string file = "libspillway_cuda.so";
  void* const library = load_plug_in(
      {.file = file,
       .folders = folders_of_program(SPILLWAY_LIBRARIES_FROM_PROGRAMS),
       .build_function = kCudaBuildFunction,
       .build = SPILLWAY_BUILD,
       .if_absent = "this build has no CUDA side (" + file +
                    " was not found); build it where nvcc and cuDNN are, or use --device host",
       .if_broken = "if CUDA 13's libraries or cuDNN 9 are installed elsewhere, put their folders "
                    "in LD_LIBRARY_PATH, or use --device host",
       .if_foreign = "install both from the same, or use --device host"});
  return *reinterpret_cast<CudaPluginFunction>(address_in(library, kCudaPluginFunction))();
}

}  // namespace spillway::cli
