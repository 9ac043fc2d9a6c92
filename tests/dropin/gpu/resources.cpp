// Uses a GPU's space through the resources of other libraries: std::pmr, cuda::mr and Thrust. Host
// code alone, which any compiler compiles. Arguments: the resource, and the device.
#include <um/dropin/cuda_memory_resource.h>
// Comes first.
#include <cuda_runtime_api.h>
#include <thrust/host_vector.h>
#include <thrust/mr/allocator.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <um/dropin/memory_resource.h>
#include <um/dropin/spillway_um.h>
#include <um/dropin/thrust_memory_resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kCount = std::size_t{1} << 20U;
constexpr std::size_t kBytes = kCount * sizeof(std::uint64_t);  // 8 MiB

void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "not so: %s; %s\n", what, spillway_um_last_error());
  std::exit(1);
}
void must(cudaError_t status, const char* what) { expect(status == cudaSuccess, what); }

spillway_um_space make_space(const char* device, std::size_t capacity) {
  spillway_um_options options;
  spillway_um_options_init(&options);
  options.device = device;
  options.near_bytes = 2 * kBytes;
  options.capacity_bytes = capacity;
  spillway_um_space space;
  expect(spillway_um_create(&options, &space) == SPILLWAY_UM_OK, "a space");
  std::int32_t ordinal = -1;
  expect(spillway_um_device(space, &ordinal) == SPILLWAY_UM_OK, "its device");
  must(cudaSetDevice(ordinal), "the device");
  return space;
}

void end(spillway_um_space space) {
  spillway_um_counters counters{};
  counters.version = SPILLWAY_UM_COUNTERS_VERSION;
  expect(spillway_um_get_counters(space, &counters) == SPILLWAY_UM_OK, "counters");
  expect(counters.frees == counters.allocations && counters.allocations > 0, "all is freed");
  expect(spillway_um_destroy(space) == SPILLWAY_UM_OK, "the end of the space");
}

// The resource is destroyed after its vector, and the space with the process.
std::unique_ptr<spillway::um::MemoryResource> resource;
std::optional<std::pmr::vector<std::uint64_t>> freed_after_main;

void use_pmr(const char* device) {
  resource = std::make_unique<spillway::um::MemoryResource>(make_space(device, 4 * kBytes));
  std::pmr::vector<std::uint64_t> numbers(kCount, resource.get());
  std::iota(numbers.begin(), numbers.end(), 0);
  freed_after_main.emplace(kCount, resource.get());
  must(cudaMemcpy(freed_after_main->data(), numbers.data(), kBytes, cudaMemcpyDefault), "a copy");
  expect(std::accumulate(freed_after_main->begin(), freed_after_main->end(), std::uint64_t{0}) ==
             kCount * (kCount - 1) / 2,
         "the numbers were copied");
  try {
    std::pmr::vector<std::uint64_t> too_many(4 * kCount, resource.get());
    expect(false, "the capacity ends");
  } catch (const std::bad_alloc&) {
    expect(true, "the capacity ends");
  }
}

#if CCCL_VERSION >= 3001000
using AnyResource = cuda::mr::resource_ref<cuda::mr::device_accessible>;
void* take(AnyResource from, std::size_t bytes, cudaStream_t stream) {
  return from.allocate(cuda::stream_ref{stream}, bytes, 256);
}
void give_back(AnyResource to, void* block, std::size_t bytes, cudaStream_t stream) {
  to.deallocate(cuda::stream_ref{stream}, block, bytes, 256);
}
#else
using AnyResource = cuda::mr::async_resource_ref<cuda::mr::device_accessible>;
void* take(AnyResource from, std::size_t bytes, cudaStream_t stream) {
  return from.allocate_async(bytes, 256, cuda::stream_ref{stream});
}
void give_back(AnyResource to, void* block, std::size_t bytes, cudaStream_t stream) {
  to.deallocate_async(block, bytes, 256, cuda::stream_ref{stream});
}
#endif

// Passes numbers from stream to stream, each with its own block; there is room for two.
void use_cuda_mr(const char* device) {
  const spillway_um_space space = make_space(device, 2 * kBytes);
  spillway::um::CudaMemoryResource adapted{space};
  const AnyResource memory{adapted};
  std::array<cudaStream_t, 2> streams{};
  for (cudaStream_t& stream : streams) must(cudaStreamCreate(&stream), "a stream");
  std::vector<std::uint64_t> back(kCount);
  for (int round = 0; round < 6; ++round) {
    cudaStream_t stream = streams.at(static_cast<std::size_t>(round) % 2);
    void* const block = take(memory, kBytes, stream);
    expect(reinterpret_cast<std::uintptr_t>(block) % 256 == 0, "an aligned block");
    must(cudaMemsetAsync(block, round, kBytes, stream), "a fill");
    must(cudaMemcpyAsync(back.data(), block, kBytes, cudaMemcpyDeviceToHost, stream), "a copy");
    give_back(memory, block, kBytes, stream);
    const std::uint64_t number = 0x0101010101010101U * static_cast<unsigned>(round);
    expect(back == std::vector<std::uint64_t>(kCount, number), "each round's own number");
  }
  void* const block = adapted.allocate(kBytes);  // without a stream
  adapted.deallocate(block, kBytes);
  for (cudaStream_t stream : streams) must(cudaStreamDestroy(stream), "the end of a stream");
  end(space);
}

void use_thrust(const char* device) {
  using Resource = spillway::um::ThrustMemoryResource<>;
  using Allocator = thrust::mr::allocator<std::uint64_t, Resource>;
  const spillway_um_space space = make_space(device, 4 * kBytes);
  Resource of_thrust{space};
  {
    thrust::host_vector<std::uint64_t, Allocator> numbers(kCount, Allocator{&of_thrust});
    thrust::sequence(numbers.begin(), numbers.end());
    thrust::host_vector<std::uint64_t, Allocator> others(kCount, Allocator{&of_thrust});
    must(cudaMemcpyAsync(others.data(), numbers.data(), kBytes, cudaMemcpyDefault, nullptr),
         "a copy");
    must(cudaDeviceSynchronize(), "its end");
    expect(thrust::reduce(others.begin(), others.end()) == kCount * (kCount - 1) / 2,
           "the numbers were copied");
  }
  end(space);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* const device = argc > 2 ? argv[2] : "cuda";
  if (what == "pmr") {
    use_pmr(device);
  } else if (what == "cuda-mr") {
    use_cuda_mr(device);
  } else if (what == "thrust") {
    use_thrust(device);
  } else {
    std::fprintf(stderr, "unknown: %s\n", what.c_str());
    return 2;
  }
  return 0;
}
