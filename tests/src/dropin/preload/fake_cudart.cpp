// A shared CUDA runtime without a GPU. It prints each call and allocates by malloc.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

int current_device = 0;

int allocate(const char* function, void** address, std::size_t bytes) {
  std::printf("runtime: %s %zu\n", function, bytes);
  if (bytes > std::size_t{1} << 40U) return 2;  // cudaErrorMemoryAllocation
  *address = std::malloc(bytes);
  return 0;
}

int release(const char* function, void* address) {
  std::printf("runtime: %s\n", function);
  std::free(address);
  return 0;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the CUDA runtime's.
extern "C" {

int cudaMalloc(void** address, std::size_t bytes) { return allocate("cudaMalloc", address, bytes); }
int cudaMallocAsync(void** address, std::size_t bytes, void* /*stream*/) {
  return allocate("cudaMallocAsync", address, bytes);
}
int cudaMallocAsync_ptsz(void** address, std::size_t bytes, void* /*stream*/) {
  return allocate("cudaMallocAsync_ptsz", address, bytes);
}
int cudaFree(void* address) { return release("cudaFree", address); }
int cudaFreeAsync(void* address, void* /*stream*/) { return release("cudaFreeAsync", address); }
int cudaFreeAsync_ptsz(void* address, void* /*stream*/) {
  return release("cudaFreeAsync_ptsz", address);
}
int cudaGetDevice(int* device) {
  *device = current_device;
  return 0;
}
int cudaSetDevice(int device) {
  current_device = device;
  return 0;
}
int cudaDeviceSynchronize() {
  std::printf("runtime: synchronized device %d\n", current_device);
  return 0;
}
/// Stream 12 is captured.
int cudaStreamIsCapturing(void* stream, int* status) {
  *status = stream == reinterpret_cast<void*>(12) ? 1 : 0;
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
