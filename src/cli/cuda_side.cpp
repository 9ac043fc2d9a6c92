#include "src/cli/cuda_side.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr const char* kLibrary = "libspillway_cuda.so";

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// The library's path; its name alone where it is in no place of ours.
std::string library_path() {
  std::error_code error;  // without /proc, or where nobody may look: the system knows places, too
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::array<std::filesystem::path, 2> folders{
      program.parent_path(), program.parent_path() / SPILLWAY_LIBRARIES_FROM_PROGRAMS};
  for (const std::filesystem::path& folder : folders) {
    if (std::filesystem::exists(folder / kLibrary, error)) return folder / kLibrary;
  }
  return kLibrary;
}

void* open_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const std::string error = dlerror();
  if (path == kLibrary) {
    throw um::Error{std::string{"this build has no CUDA side ("} + kLibrary +
                    " was not found); build it where nvcc and cuDNN are, or use --device host"};
  }
  throw um::Error{
      "its library cannot be loaded: " + error +
      "; if CUDA 13's libraries or cuDNN 9 are installed elsewhere, put their folders in "
      "LD_LIBRARY_PATH, or use --device host"};
}

}  // namespace

bool has_nvidia_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

const CudaPlugin& load_cuda_side() {
  const std::string path = library_path();
  void* const library = open_library(path);
  const auto build = find<CudaBuildFunction>(library, kCudaBuildFunction);
  const auto plugin = find<CudaPluginFunction>(library, kCudaPluginFunction);
  if (build == nullptr || plugin == nullptr || std::string_view{build()} != SPILLWAY_BUILD) {
    throw um::Error{
        path +
        " is of another build of spillway; install both from the same, or use --device host"};
  }
  return *plugin();
}

}  // namespace spillway::cli
