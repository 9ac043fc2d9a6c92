// A stand-in for CUDA's runtime without a GPU. It records each call of um/cuda/driver and uses the
// process's memory. It is linked instead of the real runtime, so that a function missing here is a
// link error.
#include "tests/um/cuda/driver/stand_in_cudart.h"

#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

struct CUstream_st {
  int number;
};
struct CUevent_st {
  int number;
};
struct CUgraph_st {};
struct CUgraphExec_st {};
struct CUctx_st {
  int device;
};

namespace spillway::um::stand_in {
namespace {

// The runtime belongs to the process, and so does its stand-in.
struct State {
  std::mutex mutex;
  Machine machine;
  std::vector<std::string> calls;
  std::string failing;
  cudaError_t failure = cudaSuccess;
  std::set<const void*> live;
  std::atomic<int> streams = 0;
  std::atomic<int> events = 0;
};
State state;
thread_local int current = 0;
thread_local std::vector<int> left;  // the devices to return to, by cuCtxPopCurrent
thread_local cudaError_t last = cudaSuccess;
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

std::string name(cudaStream_t stream) {
  return stream == nullptr ? "default" : "s" + std::to_string(stream->number);
}
std::string name(cudaEvent_t event) { return "e" + std::to_string(event->number); }

cudaError_t result(cudaError_t status) {
  if (status != cudaSuccess) last = status;
  return status;
}

/// Returns the status of a call without recording it.
cudaError_t answer(const std::string& function) {
  const std::lock_guard lock{state.mutex};
  return result(function == state.failing ? state.failure : cudaSuccess);
}

/// Records a call and returns its status.
cudaError_t call(const std::string& function, const std::string& arguments = "") {
  {
    const std::lock_guard lock{state.mutex};
    state.calls.push_back(function + (arguments.empty() ? "" : " " + arguments) + " on " +
                          std::to_string(current));
  }
  return answer(function);
}

template <class Object>
void live(Object* object) {
  const std::lock_guard lock{state.mutex};
  state.live.insert(object);
}
/// Returns whether the object was live.
bool end(const void* object) {
  const std::lock_guard lock{state.mutex};
  return state.live.erase(object) == 1;
}

cudaError_t take(const std::string& function, void** address, std::size_t size) {
  const cudaError_t status = call(function, std::to_string(size));
  if (status != cudaSuccess) return status;
  *address = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  live(*address);
  return cudaSuccess;
}
cudaError_t give_back(const char* function, void* address) {
  const cudaError_t status = call(function);
  if (status != cudaSuccess || address == nullptr) return status;
  if (!end(address)) return result(cudaErrorInvalidValue);
  std::free(address);
  return cudaSuccess;
}
template <class Object>
cudaError_t destroy(const char* function, Object* object) {
  const cudaError_t status = call(function);
  if (status != cudaSuccess) return status;
  if (!end(object)) return result(cudaErrorInvalidResourceHandle);
  delete object;
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
using Location = cudaMemLocation;
std::string text(Location to) {
  return to.type == cudaMemLocationTypeDevice ? "device " + std::to_string(to.id) : "host";
}
#else
using Location = int;
std::string text(Location to) {
  return to == cudaCpuDeviceId ? "host" : "device " + std::to_string(to);
}
#endif

std::string text(const std::size_t* sizes, std::size_t count) {
  std::string words;
  for (std::size_t i = 0; i < count; ++i) words += std::to_string(sizes[i]) + " ";
  return words;
}

CUresult discard(CUdeviceptr* /*addresses*/, std::size_t* sizes, std::size_t count,
                 unsigned long long /*flags*/, CUstream stream) {
  return static_cast<CUresult>(call("discard", text(sizes, count) + "in " + name(stream)));
}
CUresult discard_and_prefetch(CUdeviceptr* /*addresses*/, std::size_t* sizes, std::size_t count,
                              CUmemLocation* to, std::size_t* /*first*/, std::size_t /*places*/,
                              unsigned long long /*flags*/, CUstream stream) {
  return static_cast<CUresult>(
      call("discard_and_prefetch",
           text(sizes, count) + "to device " + std::to_string(to->id) + " in " + name(stream)));
}

// One context a device, live from its first use on.
std::array<CUctx_st, 2> contexts{CUctx_st{0}, CUctx_st{1}};

CUresult retain_context(CUcontext* context, CUdevice device) {
  const cudaError_t status = call("cuDevicePrimaryCtxRetain", std::to_string(device));
  if (status == cudaSuccess) live(*context = &contexts.at(static_cast<std::size_t>(device)));
  return static_cast<CUresult>(status);
}
CUresult release_context(CUdevice device) {
  const cudaError_t status = call("cuDevicePrimaryCtxRelease", std::to_string(device));
  end(&contexts.at(static_cast<std::size_t>(device)));
  return static_cast<CUresult>(status);
}
CUresult push_context(CUcontext context) {
  const cudaError_t status = call("cuCtxPushCurrent", std::to_string(context->device));
  if (status == cudaSuccess) left.push_back(std::exchange(current, context->device));
  return static_cast<CUresult>(status);
}
CUresult pop_context(CUcontext* /*context*/) {
  const cudaError_t status = call("cuCtxPopCurrent");
  if (status == cudaSuccess) {
    current = left.back();
    left.pop_back();
  }
  return static_cast<CUresult>(status);
}
CUresult get_uuid(CUuuid* uuid, CUdevice device) {
  for (std::size_t i = 0; i < sizeof uuid->bytes; ++i) {
    uuid->bytes[i] = static_cast<char>(16 * i + static_cast<std::size_t>(device));
  }
  return static_cast<CUresult>(call("cuDeviceGetUuid", std::to_string(device)));
}

// The driver's functions by name.
void* driver_function(std::string_view name) {
  if (name == "cuMemDiscardBatchAsync") return reinterpret_cast<void*>(discard);
  if (name == "cuMemDiscardAndPrefetchBatchAsync") {
    return reinterpret_cast<void*>(discard_and_prefetch);
  }
  if (name == "cuDevicePrimaryCtxRetain") return reinterpret_cast<void*>(retain_context);
  if (name == "cuDevicePrimaryCtxRelease") return reinterpret_cast<void*>(release_context);
  if (name == "cuCtxPushCurrent") return reinterpret_cast<void*>(push_context);
  if (name == "cuCtxPopCurrent") return reinterpret_cast<void*>(pop_context);
  if (name == "cuDeviceGetUuid") return reinterpret_cast<void*>(get_uuid);
  return nullptr;
}

int NVTX_API push_range(const char* message) {
  static_cast<void>(call("nvtxRangePush", message));
  return 0;
}
int NVTX_API pop_range() {
  static_cast<void>(call("nvtxRangePop"));
  return 0;
}
void NVTX_API name_stream(cudaStream_t stream, const char* words) {
  static_cast<void>(call("nvtxNameCudaStream", name(stream) + " " + words));
}

int NVTX_API attach(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  const auto put = [&](NvtxCallbackModule module, unsigned number, NvtxFunctionPointer function) {
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks->GetModuleFunctionTable(module, &table, &size) == 0 || number >= size) return;
    *table[number] = function;
  };
  put(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA,
      reinterpret_cast<NvtxFunctionPointer>(push_range));
  put(NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop,
      reinterpret_cast<NvtxFunctionPointer>(pop_range));
  put(NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaStreamA,
      reinterpret_cast<NvtxFunctionPointer>(name_stream));
  return 1;
}

// NVTX calls this at first use, as it calls a profiler.
const auto kAttached = InitializeInjectionNvtx2_fnptr = attach;

}  // namespace

void reset(const Machine& machine) {
  const std::lock_guard lock{state.mutex};
  state.machine = machine;
  state.calls.clear();
  state.failing.clear();
  state.live.clear();
  state.streams = 0;
  state.events = 0;
  current = 0;
  left.clear();
  last = cudaSuccess;
  mode = cudaStreamCaptureModeGlobal;
}

Machine& machine() { return state.machine; }

void fail(const std::string& function, cudaError_t with) {
  const std::lock_guard lock{state.mutex};
  state.failing = function;
  state.failure = with;
}

std::vector<std::string> take_calls() {
  const std::lock_guard lock{state.mutex};
  return std::exchange(state.calls, {});
}

std::size_t live_objects() {
  const std::lock_guard lock{state.mutex};
  return state.live.size();
}

int current_device() { return current; }
cudaError_t last_error() { return last; }
cudaStreamCaptureMode capture_mode() { return mode; }

}  // namespace spillway::um::stand_in

using namespace spillway::um::stand_in;

extern "C" {

// --- the machine

cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t status = call("cudaGetDeviceCount");
  *count = machine().devices;
  return status;
}
cudaError_t cudaDriverGetVersion(int* version) {
  const cudaError_t status = call("cudaDriverGetVersion");
  *version = machine().driver_version;
  return status;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return call("cudaRuntimeGetVersion");
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const cudaError_t status = call("cudaGetDeviceProperties", std::to_string(device));
  if (status != cudaSuccess) return status;
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "Stand-in %d", device);
  properties->totalGlobalMem = machine().total;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  *value = 2;
  if (which == cudaDevAttrConcurrentManagedAccess) {
    *value = static_cast<int>(machine().has_concurrent_managed_access);
  }
  if (which == cudaDevAttrIntegrated) *value = static_cast<int>(machine().is_integrated);
  return call("cudaDeviceGetAttribute", std::to_string(device));
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:0%d:00.0", device);
  return call("cudaDeviceGetPCIBusId", std::to_string(device));
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  *function = driver_function(symbol);
  *found = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return call("cudaGetDriverEntryPoint", symbol);
}
cudaError_t cudaGetDevice(int* device) {
  const cudaError_t status = answer("cudaGetDevice");
  if (status == cudaSuccess) *device = current;
  return status;
}
cudaError_t cudaSetDevice(int device) {
  const cudaError_t status = call("cudaSetDevice", std::to_string(device));
  if (status == cudaSuccess) current = device;
  return status;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = machine().free;
  *total = machine().total;
  return call("cudaMemGetInfo");
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "some failure";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOfSomeKind";
}

// --- streams, graphs and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const cudaError_t status =
      call("cudaStreamCreate", flags == cudaStreamNonBlocking ? "apart" : "legacy");
  if (status != cudaSuccess) return status;
  live(*stream = new CUstream_st{++state.streams});
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroy("cudaStreamDestroy", stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", name(stream));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* capture) {
  *capture = machine().capture;
  return call("cudaStreamIsCapturing", name(stream));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode how) {
  return call("cudaStreamBeginCapture",
              name(stream) + (how == cudaStreamCaptureModeRelaxed ? " relaxed" : " strict"));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const cudaError_t status = call("cudaStreamEndCapture", name(stream));
  if (status != cudaSuccess) return status;
  live(*graph = new CUgraph_st{});
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t /*graph*/,
                                 unsigned long long /*flags*/) {
  const cudaError_t status = call("cudaGraphInstantiate");
  if (status != cudaSuccess) return status;
  live(*ready = new CUgraphExec_st{});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy("cudaGraphDestroy", graph); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t /*graph*/, cudaStream_t stream) {
  return call("cudaGraphLaunch", "in " + name(stream));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return destroy("cudaGraphExecDestroy", graph);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  std::swap(mode, *other);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const cudaError_t status =
      call("cudaEventCreate", flags == cudaEventBlockingSync ? "timed, sleeping" : "otherwise");
  if (status != cudaSuccess) return status;
  live(*event = new CUevent_st{++state.events});
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy("cudaEventDestroy", event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", name(event) + " in " + name(stream));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return call("cudaStreamWaitEvent", name(stream) + " for " + name(event));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const cudaError_t status = call("cudaEventQuery", name(event));
  if (status != cudaSuccess) return status;
  return result(machine().has_fired ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", name(event));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = machine().elapsed;
  return call("cudaEventElapsedTime", name(from) + " to " + name(to));
}

// --- memory

cudaError_t cudaMalloc(void** address, std::size_t size) {
  return take("cudaMalloc", address, size);
}
cudaError_t cudaMallocManaged(void** address, std::size_t size, unsigned flags) {
  return take(flags == cudaMemAttachGlobal ? "cudaMallocManaged" : "other flags", address, size);
}
cudaError_t cudaHostAlloc(void** address, std::size_t size, unsigned /*flags*/) {
  return take("cudaHostAlloc", address, size);
}
cudaError_t cudaFree(void* address) { return give_back("cudaFree", address); }
cudaError_t cudaFreeHost(void* address) { return give_back("cudaFreeHost", address); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  const cudaError_t status = call("cudaMemcpy", std::to_string(size) + " in " + name(stream));
  if (status == cudaSuccess) std::memcpy(to, from, size);
  return status;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void* /*address*/, std::size_t size, Location to,
                                 unsigned /*flags*/, cudaStream_t stream) {
#else
cudaError_t cudaMemPrefetchAsync(const void* /*address*/, std::size_t size, Location to,
                                 cudaStream_t stream) {
#endif
  return call("cudaMemPrefetch", std::to_string(size) + " to " + text(to) + " in " + name(stream));
}
cudaError_t cudaMemAdvise(const void* /*address*/, std::size_t size, cudaMemoryAdvise advice,
                          Location at) {
  const char* const words = advice == cudaMemAdviseSetReadMostly     ? " read mostly"
                            : advice == cudaMemAdviseUnsetReadMostly ? " not read mostly"
                                                                     : " preferred at ";
  const bool has_place = advice == cudaMemAdviseSetPreferredLocation;
  return call("cudaMemAdvise", std::to_string(size) + words + (has_place ? text(at) : ""));
}

}  // extern "C"
