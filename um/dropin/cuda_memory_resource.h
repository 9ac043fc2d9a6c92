#pragma once

// Required by CCCL 3.0 only, before the first include of <cuda/memory_resource>.
#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#endif

#include <cuda/std/__cccl/version.h>

#include <cstddef>
#include <cstdio>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <new>

#include "um/dropin/spillway_um.h"

namespace spillway::um {

/// Adapts a GPU's space to cuda::mr, and to RMM, which uses that concept. It has both sets of
/// methods. CCCL 3.0 calls allocate and allocate_async; newer versions call allocate_sync, and
/// allocate with the stream first.
///
/// Borrows the space, which must outlive it. Throws: std::bad_alloc; spillway_um_last_error() says
/// why. A refused free writes this text to standard error. Thread safety: that of the space.
class CudaMemoryResource {
 public:
  /// The alignment of cudaMalloc, which other libraries rely on.
  static constexpr std::size_t kAlignment = 256;

  explicit CudaMemoryResource(spillway_um_space space) noexcept : space_{space} {}

  [[nodiscard]] spillway_um_space space() const noexcept { return space_; }

  // CCCL 3.0: cuda::mr::resource and async_resource.
  void* allocate(std::size_t bytes, std::size_t alignment = kAlignment) {
    return allocate(cuda::stream_ref{cudaStream_t{}}, bytes, alignment);
  }
  void deallocate(void* address, std::size_t bytes, std::size_t alignment = kAlignment) noexcept {
    deallocate(cuda::stream_ref{cudaStream_t{}}, address, bytes, alignment);
  }
  void* allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) {
    return allocate(stream, bytes, alignment);
  }
  void* allocate_async(std::size_t bytes, cuda::stream_ref stream) {
    return allocate(stream, bytes, kAlignment);
  }
  void deallocate_async(void* address, std::size_t bytes, std::size_t alignment,
                        cuda::stream_ref stream) noexcept {
    deallocate(stream, address, bytes, alignment);
  }
  void deallocate_async(void* address, std::size_t bytes, cuda::stream_ref stream) noexcept {
    deallocate(stream, address, bytes, kAlignment);
  }

  // CCCL 3.1 and newer: cuda::mr::synchronous_resource and resource.
  void* allocate_sync(std::size_t bytes, std::size_t alignment = kAlignment) {
    return allocate(bytes, alignment);
  }
  void deallocate_sync(void* address, std::size_t bytes,
                       std::size_t alignment = kAlignment) noexcept {
    deallocate(address, bytes, alignment);
  }
  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = kAlignment) {
    void* address = nullptr;
    const std::size_t size = bytes == 0 ? 1 : bytes;
    if (spillway_um_allocate_async(space_, size, alignment, stream.get(), &address) !=
        SPILLWAY_UM_OK) {
      throw std::bad_alloc{};
    }
    return address;
  }
  void deallocate(cuda::stream_ref stream, void* address, std::size_t /*bytes*/,
                  std::size_t /*alignment*/ = kAlignment) noexcept {
    if (spillway_um_free_async(space_, address, stream.get()) != SPILLWAY_UM_OK) {
      static_cast<void>(std::fprintf(stderr, "%s\n", spillway_um_last_error()));
    }
  }

  friend bool operator==(const CudaMemoryResource& a, const CudaMemoryResource& b) noexcept {
    return a.space_.id == b.space_.id;
  }
  friend bool operator!=(const CudaMemoryResource& a, const CudaMemoryResource& b) noexcept {
    return !(a == b);
  }
  friend constexpr void get_property(const CudaMemoryResource& /*resource*/,
                                     cuda::mr::device_accessible /*property*/) noexcept {}
  friend constexpr void get_property(const CudaMemoryResource& /*resource*/,
                                     cuda::mr::host_accessible /*property*/) noexcept {}

 private:
  spillway_um_space space_;
};

#if CCCL_VERSION >= 3001000
static_assert(cuda::mr::synchronous_resource<CudaMemoryResource>);
static_assert(cuda::mr::resource<CudaMemoryResource>);
static_assert(cuda::mr::resource_with<CudaMemoryResource, cuda::mr::device_accessible,
                                      cuda::mr::host_accessible>);
#else
static_assert(cuda::mr::resource<CudaMemoryResource>);
static_assert(cuda::mr::async_resource<CudaMemoryResource>);
static_assert(cuda::mr::async_resource_with<CudaMemoryResource, cuda::mr::device_accessible,
                                            cuda::mr::host_accessible>);
#endif

}  // namespace spillway::um
