// CUDA's runtime for the emulated GPU: memory, devices and hints. Compiled with NVIDIA's headers.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card.h"
#include "tests/src/cuda/emulated_gpu/emulated_call.h"

namespace spillway::emulated {
namespace {

constexpr int kOldestDriver = 12000;  // with which this runtime works at all

bool is_device(int ordinal) { return ordinal >= 0 && ordinal < card().settings.devices; }

cudaError_t allocate(void** address, BlockKind kind, std::size_t size) {
  make_context();
  expect_no_capture("an allocation");
  *address = nullptr;
  if (size == 0) return cudaSuccess;
  *address = card().memory.allocate(kind, size, card_thread().device);
  return *address == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

// In the order of a stream, which need not be the current device's.
cudaError_t allocate_in_order(void** address, std::size_t size, cudaStream_t handle) {
  make_context();
  *address = nullptr;
  const CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) {
    report_mistake("an allocation for a stream that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture) return failed(cudaErrorNotSupported);  // graphs here own no memory
  if (size == 0) return cudaSuccess;
  *address = card().memory.allocate(BlockKind::kDevice, size, stream->device);
  return *address == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t release_in_order(void* address, cudaStream_t handle) {
  make_context();
  Card& gpu = card();
  const CUstream_st* const stream = find_stream(handle);
  if (stream != nullptr && stream->capture) return failed(cudaErrorNotSupported);
  Block* const block = gpu.memory.find(address, 1);
  if (block == nullptr || block->begin != address || block->kind != BlockKind::kDevice ||
      block->is_leaving) {
    report_mistake("memory is freed on a stream that is not device memory, or is freed already");
    return failed(cudaErrorInvalidValue);
  }
  block->is_leaving = true;
  auto* const begin = block->begin;
  const std::size_t size = block->size;
  return submit(handle, WorkKind::kMove,
                {.name = "free", .accesses = {{begin, size, true}}, .compute = [begin, size] {
                   if (card().settings.finds_races) card().races.forget(begin, size);
                   card().memory.free(begin);
                 }});
}

// As the driver's, waits for all work of the device.
cudaError_t release(void* address, bool is_pinned) {
  make_context();
  if (address == nullptr) return cudaSuccess;
  Card& gpu = card();
  const auto found = gpu.memory.blocks().find(static_cast<std::byte*>(address));
  if (found == gpu.memory.blocks().end() || found->second.is_leaving ||
      (found->second.kind == BlockKind::kPinned) != is_pinned) {
    report_mistake("memory is freed that was not allocated so, or is freed already");
    return failed(cudaErrorInvalidValue);
  }
  expect_no_capture("freeing memory");
  gpu.queue.wait_for_all();
  if (gpu.settings.finds_races) gpu.races.forget(address, found->second.size);
  gpu.memory.free(static_cast<std::byte*>(address));
  return cudaSuccess;
}

Block* managed_block(const void* begin, std::size_t size) {
  Block* const block = card().memory.find(begin, size);
  return block != nullptr && block->kind == BlockKind::kManaged && size > 0 ? block : nullptr;
}

bool has_hints() {
  const CardKind kind = card().settings.kind;
  return kind == CardKind::kDiscrete || kind == CardKind::kCoherent;
}

// A side of a copy, by the memory that it lies in.
struct CopySide {
  Block* block;
  bool is_near;  // device or managed memory
};
CopySide side_of(const void* begin, std::size_t size) {
  Card& gpu = card();
  Block* const block = gpu.memory.find(begin, size);
  if (block == nullptr && gpu.memory.is_of_card(begin)) {
    report_mistake("a copy goes beyond a block of memory, or one that is freed");
  }
  return {.block = block, .is_near = block != nullptr && block->kind != BlockKind::kPinned};
}

bool fits_direction(cudaMemcpyKind kind, const CopySide& from, const CopySide& to) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to.is_near && !from.is_near;
    case cudaMemcpyDeviceToHost:
      return from.is_near && !to.is_near;
    case cudaMemcpyDeviceToDevice:
      return from.is_near && to.is_near;
    case cudaMemcpyDefault:
      return from.is_near || to.is_near;
    case cudaMemcpyHostToHost:
      break;
  }
  return false;
}

cudaError_t copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  const CopySide source = side_of(from, size);
  const CopySide target = side_of(to, size);
  if (!fits_direction(kind, source, target)) {
    report_mistake("a copy whose direction does not fit its memory");
    return failed(cudaErrorInvalidValue);
  }
  const auto* const first = static_cast<const std::byte*>(from);
  auto* const last = static_cast<std::byte*>(to);
  if (first < last + size && last < first + size) report_mistake("a copy overlaps itself");
  Work work{
      .name = target.is_near ? (source.is_near ? "copy near to near" : "copy near") : "copy far",
      .accesses = {},
      .compute = [=] { std::memcpy(to, from, size); }};
  count("bytes of a " + work.name, size);
  if (source.block != nullptr) work.accesses.push_back({from, size, false});
  if (target.block != nullptr) work.accesses.push_back({to, size, true});
  const bool is_captured = find_stream(stream) != nullptr && find_stream(stream)->capture;
  if (source.block == nullptr) {
    count("copies from pageable memory");
    if (is_captured) report_mistake("a captured copy reads pageable memory");
    auto staged = std::make_shared<std::vector<std::byte>>(first, first + size);
    work.compute = [=] { std::memcpy(to, staged->data(), size); };
  }
  const cudaError_t status = submit(stream, WorkKind::kMove, std::move(work));
  if (status != cudaSuccess || target.block != nullptr) return status;
  count("copies to pageable memory");  // return when they are done
  if (is_captured) {
    report_mistake("a captured copy writes pageable memory");
  } else {
    card().queue.wait(find_stream(stream)->tail);
  }
  return cudaSuccess;
}

cudaError_t prefetch(const void* begin, std::size_t size, const cudaMemLocation& location,
                     cudaStream_t stream) {
  Block* const block = managed_block(begin, size);
  const CUstream_st* const to = find_stream(stream);
  if (block == nullptr || !has_hints()) {
    report_mistake("a prefetch of memory that is not managed, or on a device without hints");
    return failed(cudaErrorInvalidValue);
  }
  if (to != nullptr && to->capture) {
    report_mistake("a prefetch is captured");
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  const bool near = location.type == cudaMemLocationTypeDevice;
  if (near && !is_device(location.id)) return failed(cudaErrorInvalidDevice);
  const std::string name = near ? "prefetch near" : "prefetch far";
  count("bytes of a " + name, size);
  Work work{.name = name, .accesses = {}, .compute = [=] {
              CardMemory& memory = card().memory;
              if (near) {
                memory.bring(*block, begin, size, location.id);
              } else {
                memory.send(*block, begin, size);
              }
            }};
  // A page that leaves while a kernel uses it is correct for CUDA, but a forgotten wait here.
  if (!near) work.accesses.push_back({begin, size, true});
  return submit(stream, WorkKind::kMove, std::move(work));
}

// The driver's batches of discards.
CUresult discard_all(const char* name, const CUdeviceptr* addresses, const std::size_t* sizes,
                     std::size_t count_of_ranges, int device, CUstream stream) {
  const EmulatedCall call{name};
  if (call.error() != cudaSuccess) return static_cast<CUresult>(call.error());
  if (card().contexts.count(card_thread().device) == 0) {
    report_mistake("a discard by a thread without a context");
  }
  if (count_of_ranges == 0) {
    report_mistake("a discard of no ranges");
    return CUDA_ERROR_INVALID_VALUE;
  }
  Work work{
      .name = device >= 0 ? "discard and prefetch near" : "discard", .accesses = {}, .compute = {}};
  std::vector<std::pair<Block*, Access>> ranges;
  for (std::size_t i = 0; i < count_of_ranges; ++i) {
    const auto* const begin = reinterpret_cast<const void*>(addresses[i]);
    Block* const block = managed_block(begin, sizes[i]);
    if (block == nullptr || !has_hints()) {
      report_mistake("a discard of memory that is not managed, or on a device without hints");
      return CUDA_ERROR_INVALID_VALUE;
    }
    ranges.emplace_back(block, Access{begin, sizes[i], true});
    work.accesses.push_back(ranges.back().second);
    count("bytes of a " + work.name, sizes[i]);
  }
  if (find_stream(stream) != nullptr && find_stream(stream)->capture) {
    report_mistake("a discard is captured");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  work.compute = [ranges, device] {
    CardMemory& memory = card().memory;
    for (const auto& [block, range] : ranges) {
      memory.discard(*block, range.begin, range.size);
      if (device >= 0) memory.bring(*block, range.begin, range.size, device);
    }
  };
  return static_cast<CUresult>(submit(stream, WorkKind::kMove, std::move(work)));
}

CUresult discard(CUdeviceptr* addresses, std::size_t* sizes, std::size_t ranges,
                 unsigned long long /*flags*/, CUstream stream) {
  return discard_all("cuMemDiscardBatchAsync", addresses, sizes, ranges, -1, stream);
}

CUresult discard_and_prefetch(CUdeviceptr* addresses, std::size_t* sizes, std::size_t ranges,
                              CUmemLocation* locations, std::size_t* location_of,
                              std::size_t count_of_locations, unsigned long long /*flags*/,
                              CUstream stream) {
  if (count_of_locations != 1 || location_of[0] != 0 ||
      locations->type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(locations->id)) {
    report_mistake("a discard and prefetch with locations that do not fit");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return discard_all("cuMemDiscardAndPrefetchBatchAsync", addresses, sizes, ranges, locations->id,
                     stream);
}

}  // namespace
}  // namespace spillway::emulated

namespace emulated = spillway::emulated;
using emulated::BlockKind;
using emulated::card;
using emulated::card_thread;
using emulated::EmulatedCall;
using emulated::failed;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const EmulatedCall call{"cudaGetDeviceCount"};
  *count = card().settings.devices;
  if (call.error() == cudaSuccess && card().settings.driver < emulated::kOldestDriver) {
    return failed(cudaErrorInsufficientDriver);
  }
  if (call.error() == cudaSuccess && *count == 0) return failed(cudaErrorNoDevice);
  return call.error();
}
cudaError_t cudaDriverGetVersion(int* version) {
  const EmulatedCall call{"cudaDriverGetVersion"};
  *version = card().settings.driver;
  return call.error();
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  const EmulatedCall call{"cudaRuntimeGetVersion"};
  *version = CUDART_VERSION;
  return call.error();
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorDevicesUnavailable:
      return "the device is lost";
    default:
      return "an error of the emulated GPU";
  }
}
const char* cudaGetErrorName(cudaError_t error) {
  thread_local char name[32];
  std::snprintf(name, sizeof name, "cudaError %d", error);
  return name;
}
cudaError_t cudaGetLastError() { return std::exchange(card_thread().last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return card_thread().last; }

cudaError_t cudaGetDevice(int* device) {
  const EmulatedCall call{"cudaGetDevice"};
  *device = card_thread().device;
  return call.error();
}
cudaError_t cudaSetDevice(int device) {
  const EmulatedCall call{"cudaSetDevice"};
  if (call.error() != cudaSuccess) return call.error();
  if (!emulated::is_device(device)) return failed(cudaErrorInvalidDevice);
  card_thread().device = device;
  emulated::make_context();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const EmulatedCall call{"cudaGetDeviceProperties"};
  if (call.error() != cudaSuccess) return call.error();
  if (!emulated::is_device(device)) return failed(cudaErrorInvalidDevice);
  const emulated::CardSettings& settings = card().settings;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated GPU, a test double");
  std::memset(properties->uuid.bytes, 0xE0 + device, sizeof properties->uuid.bytes);
  properties->major = 9;
  properties->totalGlobalMem = settings.memory;
  properties->multiProcessorCount = 132;
  properties->integrated = settings.kind == emulated::CardKind::kIntegrated ? 1 : 0;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const EmulatedCall call{"cudaDeviceGetAttribute"};
  if (call.error() != cudaSuccess) return call.error();
  if (!emulated::is_device(device)) return failed(cudaErrorInvalidDevice);
  const emulated::CardKind kind = card().settings.kind;
  const bool is_coherent = kind == emulated::CardKind::kCoherent;
  switch (attribute) {
    case cudaDevAttrAsyncEngineCount:
      *value = 3;
      break;
    case cudaDevAttrConcurrentManagedAccess:
      *value = emulated::has_hints() ? 1 : 0;
      break;
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
      *value = is_coherent ? 1 : 0;
      break;
    case cudaDevAttrIntegrated:
      *value = kind == emulated::CardKind::kIntegrated ? 1 : 0;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  const EmulatedCall call{"cudaDeviceGetPCIBusId"};
  if (call.error() != cudaSuccess) return call.error();
  if (!emulated::is_device(device)) return failed(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const EmulatedCall call{"cudaMemGetInfo"};
  if (call.error() != cudaSuccess) return call.error();
  emulated::make_context();
  *total = card().settings.memory;
  *free = card().memory.free_bytes(card_thread().device);
  return cudaSuccess;
}
// Writes nothing: kernels are compiled with a smaller type.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* /*attributes*/, const void* /*function*/) {
  const EmulatedCall call{"cudaFuncGetAttributes"};
  return call.error();
}

cudaError_t cudaMalloc(void** address, std::size_t size) {
  const EmulatedCall call{"cudaMalloc"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::allocate(address, BlockKind::kDevice, size);
}
cudaError_t cudaMallocManaged(void** address, std::size_t size, unsigned flags) {
  const EmulatedCall call{"cudaMallocManaged"};
  if (call.error() != cudaSuccess) return call.error();
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) {
    return failed(cudaErrorInvalidValue);
  }
  return emulated::allocate(address, BlockKind::kManaged, size);
}
cudaError_t cudaHostAlloc(void** address, std::size_t size, unsigned /*flags*/) {
  const EmulatedCall call{"cudaHostAlloc"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::allocate(address, BlockKind::kPinned, size);
}
cudaError_t cudaMallocHost(void** address, std::size_t size) {
  return cudaHostAlloc(address, size, cudaHostAllocDefault);
}
cudaError_t cudaMallocAsync(void** address, std::size_t size, cudaStream_t stream) {
  const EmulatedCall call{"cudaMallocAsync"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::allocate_in_order(address, size, stream);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  const EmulatedCall call{"cudaFreeAsync"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::release_in_order(address, stream);
}
// For programs with a default stream for each thread.
cudaError_t cudaMallocAsync_ptsz(void** address, std::size_t size, cudaStream_t stream);
cudaError_t cudaMallocAsync_ptsz(void** address, std::size_t size, cudaStream_t stream) {
  return cudaMallocAsync(address, size, stream == nullptr ? cudaStreamPerThread : stream);
}
cudaError_t cudaFreeAsync_ptsz(void* address, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void* address, cudaStream_t stream) {
  return cudaFreeAsync(address, stream == nullptr ? cudaStreamPerThread : stream);
}
cudaError_t cudaFree(void* address) {
  const EmulatedCall call{"cudaFree"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::release(address, false);
}
cudaError_t cudaFreeHost(void* address) {
  const EmulatedCall call{"cudaFreeHost"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::release(address, true);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const EmulatedCall call{"cudaPointerGetAttributes"};
  if (call.error() != cudaSuccess) return call.error();
  *attributes = {};
  const emulated::Block* const block = card().memory.find(address, 1);
  if (block == nullptr) return cudaSuccess;  // cudaMemoryTypeUnregistered
  attributes->device = block->device;
  attributes->type = block->kind == BlockKind::kDevice    ? cudaMemoryTypeDevice
                     : block->kind == BlockKind::kManaged ? cudaMemoryTypeManaged
                                                          : cudaMemoryTypeHost;
  attributes->devicePointer = const_cast<void*>(address);
  if (block->kind != BlockKind::kDevice) attributes->hostPointer = const_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* address, int byte, std::size_t size, cudaStream_t stream) {
  const EmulatedCall call{"cudaMemsetAsync"};
  if (call.error() != cudaSuccess || size == 0) return call.error();
  return emulated::submit(stream, emulated::WorkKind::kCompute,
                          {.name = "memset", .accesses = {{address, size, true}}, .compute = [=] {
                             std::memset(address, byte, size);
                           }});
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const EmulatedCall call{"cudaMemcpyAsync"};
  if (call.error() != cudaSuccess) return call.error();
  return emulated::copy(to, from, size, kind, stream);
}

// On the legacy stream; return when they are done, as nearly all of CUDA's do.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  const EmulatedCall call{"cudaMemcpy"};
  if (call.error() != cudaSuccess) return call.error();
  const cudaError_t error = emulated::copy(to, from, size, kind, nullptr);
  if (error == cudaSuccess) card().queue.wait(emulated::find_stream(nullptr)->tail);
  return error;
}
cudaError_t cudaMemset(void* address, int byte, std::size_t size) {
  const EmulatedCall call{"cudaMemset"};
  if (call.error() != cudaSuccess) return call.error();
  const cudaError_t error = cudaMemsetAsync(address, byte, size, nullptr);
  if (error == cudaSuccess) card().queue.wait(emulated::find_stream(nullptr)->tail);
  return error;
}

cudaError_t cudaMemAdvise(const void* begin, std::size_t size, cudaMemoryAdvise /*advice*/,
                          cudaMemLocation /*location*/) {
  const EmulatedCall call{"cudaMemAdvise"};
  if (call.error() != cudaSuccess) return call.error();
  if (emulated::managed_block(begin, size) != nullptr) return cudaSuccess;
  emulated::report_mistake("advice about memory that is not managed");
  return failed(cudaErrorInvalidValue);
}
cudaError_t cudaMemPrefetchAsync(const void* begin, std::size_t size, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  const EmulatedCall call{"cudaMemPrefetchAsync"};
  if (call.error() != cudaSuccess) return call.error();
  if (flags != 0) return failed(cudaErrorInvalidValue);
  return emulated::prefetch(begin, size, location, stream);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  const EmulatedCall call{"cudaGetDriverEntryPointByVersion"};
  const std::string asked = name;
  *function = nullptr;
  if (version <= static_cast<unsigned>(card().settings.driver)) {
    if (asked == "cuMemDiscardBatchAsync") *function = reinterpret_cast<void*>(&emulated::discard);
    if (asked == "cuMemDiscardAndPrefetchBatchAsync") {
      *function = reinterpret_cast<void*>(&emulated::discard_and_prefetch);
    }
    if (*function == nullptr) *function = emulated::find_context_function(asked);
  }
  if (result != nullptr) {
    *result =
        *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  }
  return call.error();
}

}  // extern "C"
