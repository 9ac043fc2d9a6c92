// Makes two spaces on one GPU under different names, and one on another GPU; or, with an argument,
// allocates and frees like PyTorch, CuPy and the stream-ordered functions.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "um/dropin/spillway_um.h"

namespace {

bool use(spillway_um_space space) {
  void* block = nullptr;
  return spillway_um_allocate(space, 4096, 0, &block) == SPILLWAY_UM_OK &&
         spillway_um_free_async(space, block, nullptr) == SPILLWAY_UM_OK;
}

// Each allocation is large enough for pages of its own.
bool use_pools(spillway_um_options options) {
  constexpr int kDevice = 1;
  constexpr std::size_t kBytes = 256U << 10U;
  options.device = "cuda:1";
  spillway_um_space space{};
  if (spillway_um_set_default(&options) != SPILLWAY_UM_OK ||
      spillway_um_default(&space) != SPILLWAY_UM_OK) {
    return false;
  }
  void* const torch = reinterpret_cast<void*>(std::intptr_t{7});
  void* const tensor = spillway_torch_malloc(kBytes, kDevice, torch);
  spillway_torch_free(tensor, kBytes, kDevice, torch);
  void* const array = spillway_cupy_malloc(nullptr, kBytes, kDevice);
  spillway_cupy_free(nullptr, array, kDevice);
  void* const other = reinterpret_cast<void*>(std::intptr_t{8});
  void* block = nullptr;
  return spillway_um_allocate_async(space, kBytes, 0, other, &block) == SPILLWAY_UM_OK &&
         spillway_um_free_async(space, block, other) == SPILLWAY_UM_OK;
}

}  // namespace

int main(int arguments, char** /*argument*/) {
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.near_bytes = 1U << 20U;
  options.capacity_bytes = 1U << 20U;
  if (arguments > 1) return use_pools(options) ? 0 : 1;
  for (const char* device : {"cuda", "cuda:0", "cuda:1"}) {
    options.device = device;
    spillway_um_space space{};
    if (spillway_um_create(&options, &space) != SPILLWAY_UM_OK || !use(space)) {
      std::puts(spillway_um_last_error());
      return 1;
    }
  }
}
