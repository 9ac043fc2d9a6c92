#include "src/dropin/preload/real_function.h"

#include <dlfcn.h>

#include "src/dropin/preload/loaded_library.h"

namespace spillway::dropin {

void* find_real_function(const char* name) noexcept {
  void* const next = dlsym(RTLD_NEXT, name);
  if (next != nullptr) return next;
  const LoadedPath path = loaded_library("libcudart.so");
  if (path.front() == '\0') return nullptr;
  void* const runtime = dlopen(path.data(), RTLD_LAZY | RTLD_NOLOAD);
  return runtime == nullptr ? nullptr : dlsym(runtime, name);
}

}  // namespace spillway::dropin
