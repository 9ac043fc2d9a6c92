// The functions of the CUDA runtime that this library replaces. Programs compiled with per-thread
// default streams call the _ptsz functions.
//
// cudaMallocFromPoolAsync is not replaced: a program that names a pool wants that pool's
// properties.
#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/dropin/preload/real_runtime.h"
#include "src/dropin/preload/served_memory.h"

namespace {

using spillway::dropin::CudaStatus;
using spillway::dropin::CudaStream;
using spillway::dropin::kCudaSuccess;
using spillway::dropin::RealFunction;
using spillway::dropin::served_memory;

using RealMallocAsync = RealFunction<void**, std::size_t, CudaStream>;
using RealFreeAsync = RealFunction<void*, CudaStream>;
constinit const RealFunction<void**, std::size_t> kMalloc{"cudaMalloc"};
constinit const RealFunction<void*> kFree{"cudaFree"};
constinit const RealMallocAsync kMallocAsync{"cudaMallocAsync"};
constinit const RealMallocAsync kMallocAsyncOfThread{"cudaMallocAsync_ptsz"};
constinit const RealFreeAsync kFreeAsync{"cudaFreeAsync"};
constinit const RealFreeAsync kFreeAsyncOfThread{"cudaFreeAsync_ptsz"};

/// Resolves NULL in the _ptsz functions to cudaStreamPerThread, as other functions call it.
CudaStream or_thread_stream(CudaStream stream) {
  constexpr std::uintptr_t kPerThread = 2;
  return stream == nullptr ? std::bit_cast<CudaStream>(kPerThread) : stream;
}

CudaStatus malloc_async(const RealMallocAsync& real, void** address, std::size_t bytes,
                        CudaStream given, CudaStream meant) {
  if (address != nullptr) {
    if (void* const served = served_memory().allocate_async(bytes, meant)) {
      *address = served;
      return kCudaSuccess;
    }
  }
  return real(address, bytes, given);
}

CudaStatus free_async(const RealFreeAsync& real, void* address, CudaStream given,
                      CudaStream meant) {
  if (served_memory().has(address)) return served_memory().free_async(address, meant);
  if (address != nullptr) served_memory().count_foreign_free();
  return real(address, given);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the CUDA runtime's.
extern "C" {

[[gnu::visibility("default")]] CudaStatus cudaMalloc(void** address, std::size_t bytes) {
  if (address != nullptr) {
    if (void* const served = served_memory().allocate(bytes)) {
      *address = served;
      return kCudaSuccess;
    }
  }
  return kMalloc(address, bytes);
}

[[gnu::visibility("default")]] CudaStatus cudaFree(void* address) {
  if (served_memory().has(address)) return served_memory().free(address);
  if (address != nullptr) served_memory().count_foreign_free();
  return kFree(address);
}

[[gnu::visibility("default")]] CudaStatus cudaMallocAsync(void** address, std::size_t bytes,
                                                          CudaStream stream) {
  return malloc_async(kMallocAsync, address, bytes, stream, stream);
}

[[gnu::visibility("default")]] CudaStatus cudaMallocAsync_ptsz(void** address, std::size_t bytes,
                                                               CudaStream stream) {
  return malloc_async(kMallocAsyncOfThread, address, bytes, stream, or_thread_stream(stream));
}

[[gnu::visibility("default")]] CudaStatus cudaFreeAsync(void* address, CudaStream stream) {
  return free_async(kFreeAsync, address, stream, stream);
}

[[gnu::visibility("default")]] CudaStatus cudaFreeAsync_ptsz(void* address, CudaStream stream) {
  return free_async(kFreeAsyncOfThread, address, stream, or_thread_stream(stream));
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
