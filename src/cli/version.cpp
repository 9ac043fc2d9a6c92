#include "src/cli/version.h"

#include <fmt/core.h>

#include "src/bench/build.h"
#include "src/host/host_backend.h"

namespace spillway::cli {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

constexpr const char* kCuda = SPILLWAY_CUDA_VERSION;  // empty without the CUDA side

}  // namespace

std::string version_text() {
  const std::string commit = build_commit();
  return fmt::format("spillway {}\ncommit {}\n{}\n{}\n{}{}", build_version(),
                     commit.empty() ? "unknown" : commit, kCompiler, host::kernel_library(),
                     *kCuda == '\0' ? "built without CUDA" : "built with CUDA ", kCuda);
}

}  // namespace spillway::cli
