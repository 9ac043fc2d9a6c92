// Makes two spaces on one GPU under different names, and one on another GPU.
#include <cstdio>
#include <initializer_list>

#include "um/dropin/spillway_um.h"

namespace {

bool use(spillway_um_space space) {
  void* block = nullptr;
  return spillway_um_allocate(space, 4096, 0, &block) == SPILLWAY_UM_OK &&
         spillway_um_free_async(space, block, nullptr) == SPILLWAY_UM_OK;
}

}  // namespace

int main() {
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.near_bytes = 1U << 20U;
  options.capacity_bytes = 1U << 20U;
  for (const char* device : {"cuda", "cuda:0", "cuda:1"}) {
    options.device = device;
    spillway_um_space space{};
    if (spillway_um_create(&options, &space) != SPILLWAY_UM_OK || !use(space)) {
      std::puts(spillway_um_last_error());
      return 1;
    }
  }
}
