// Fills a vector in a GPU's space by a kernel and sums it, and allocates on a stream. On a machine
// without a GPU, prints a message and succeeds unless SPILLWAY_REQUIRE_GPU is set.
#include <thrust/device_vector.h>
#include <thrust/mr/allocator.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/universal_ptr.h>
#include <um/dropin/cuda_memory_resource.h>
#include <um/dropin/spillway_um.h>
#include <um/dropin/thrust_memory_resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Resource = spillway::um::ThrustMemoryResource<thrust::universal_ptr<void>>;
using Allocator = thrust::mr::allocator<std::uint64_t, Resource>;

// Uses the resource like generic code for stream-ordered resources.
template <class AnyResource>
bool borrow(AnyResource& resource, cudaStream_t stream) {
  void* const block = resource.allocate(cuda::stream_ref{stream}, 1000, 256);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(block) % 256 == 0;
  cudaMemsetAsync(block, 1, 1000, stream);
  resource.deallocate(cuda::stream_ref{stream}, block, 1000, 256);
  return is_aligned && cudaStreamSynchronize(stream) == cudaSuccess;
}

bool run(spillway_um_space space) {
  constexpr std::uint64_t kCount = 1U << 20U;
  Resource resource{space};
  std::uint64_t sum = 0;
  {
    thrust::device_vector<std::uint64_t, Allocator> numbers(kCount, Allocator{&resource});
    thrust::sequence(numbers.begin(), numbers.end());
    sum = thrust::reduce(numbers.begin(), numbers.end());
  }
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return false;
  spillway::um::CudaMemoryResource borrowed{space};
  const bool is_borrowed = borrow(borrowed, stream);
  cudaStreamDestroy(stream);
  return sum == kCount * (kCount - 1) / 2 && is_borrowed;
}

}  // namespace

int main() {
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.device = "cuda";
  options.near_bytes = 64U << 20U;
  options.capacity_bytes = 64U << 20U;
  spillway_um_space space;
  const spillway_um_status status = spillway_um_create(&options, &space);
  if (status != SPILLWAY_UM_OK) {
    std::printf("%s\n", spillway_um_last_error());
    if (std::getenv("SPILLWAY_REQUIRE_GPU") != nullptr) return 1;
    return status == SPILLWAY_UM_FAILED && std::strlen(spillway_um_last_error()) > 0 ? 0 : 1;
  }
  return run(space) && spillway_um_destroy(space) == SPILLWAY_UM_OK ? 0 : 1;
}
