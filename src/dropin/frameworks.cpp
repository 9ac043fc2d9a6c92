// The default space as PyTorch and CuPy want it.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "src/dropin/default_space.h"
#include "src/dropin/failure.h"
#include "src/dropin/live_spaces.h"
#include "um/dropin/allocations.h"
#include "um/dropin/spillway_um.h"

namespace {

using spillway::dropin::default_space;
using spillway::dropin::guarded;
using spillway::dropin::last_failure;
using spillway::dropin::live_spaces;
using spillway::dropin::OpenSpace;
using spillway::um::Bytes;

constexpr Bytes kAlignment{512};  // what frameworks assume of CUDA's allocators

/// On the host every device is the same.
std::shared_ptr<OpenSpace> space_on(int device, std::uint64_t handle) {
  auto open = live_spaces().at(handle);
  if (open->ordinal() >= 0 && open->ordinal() != device) {
    throw spillway::um::Misuse{"the default space is on cuda:" + std::to_string(open->ordinal()) +
                               ", not on device " + std::to_string(device) +
                               "; say which with SPILLWAY_UM_DEVICE=cuda:N"};
  }
  return open;
}

/// There is nobody else to tell: these functions have no status.
void report(spillway_um_status status, const char* function) {
  if (status != SPILLWAY_UM_OK) std::fprintf(stderr, "%s: %s\n", function, last_failure());
}

void* allocate(std::size_t bytes, int device, const char* function) {
  if (bytes == 0) return nullptr;
  void* address = nullptr;
  report(guarded([&] {
           address = space_on(device, default_space().handle())->allocate(Bytes{bytes}, kAlignment);
         }),
         function);
  return address;
}

void free_in_order(void* address, int device, void* stream, const char* function) {
  if (address == nullptr) return;
  report(guarded([&] {
           // None is made in order to free what cannot be its own: in a child of fork(), say.
           const auto open = space_on(device, default_space().last_handle());
           open->free_after(address, open->ordinal() < 0 ? nullptr : open->record(stream));
         }),
         function);
}

}  // namespace

extern "C" {

void* spillway_torch_malloc(ptrdiff_t bytes, int device, void* /*stream*/) {
  return bytes <= 0 ? nullptr
                    : allocate(static_cast<std::size_t>(bytes), device, "spillway_torch_malloc");
}

void spillway_torch_free(void* address, ptrdiff_t /*bytes*/, int device, void* stream) {
  free_in_order(address, device, stream, "spillway_torch_free");
}

void* spillway_cupy_malloc(void* /*param*/, size_t bytes, int device) {
  return allocate(bytes, device, "spillway_cupy_malloc");
}

void spillway_cupy_free(void* /*param*/, void* address, int device) {
  free_in_order(address, device, nullptr, "spillway_cupy_free");
}

}  // extern "C"
