// The driver's contexts, by which a library works on a device without making another one current.
#include <cuda.h>

#include <bit>
#include <cstdint>
#include <map>
#include <string>

#include "tests/src/cuda/emulated_gpu/card.h"
#include "tests/src/cuda/emulated_gpu/emulated_call.h"

namespace spillway::emulated {
namespace {

bool has_device(int ordinal) { return ordinal >= 0 && ordinal < card().settings.devices; }

// A context is the number of its device plus one.
CUcontext context_of(int device) {
  return std::bit_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
}
int device_of(CUcontext context) {
  return static_cast<int>(std::bit_cast<std::uintptr_t>(context)) - 1;
}

CUresult get_uuid(CUuuid* uuid, CUdevice device) {
  const EmulatedCall call{"cuDeviceGetUuid"};
  if (call.error() != cudaSuccess) return static_cast<CUresult>(call.error());
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  for (char& byte : uuid->bytes) byte = static_cast<char>(0xE0 + device);
  return CUDA_SUCCESS;
}

CUresult retain(CUcontext* context, CUdevice device) {
  const EmulatedCall call{"cuDevicePrimaryCtxRetain"};
  if (call.error() != cudaSuccess) return static_cast<CUresult>(call.error());
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  card().contexts.insert(device);
  card().retained.insert(device);
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult release(CUdevice device) {
  const EmulatedCall call{"cuDevicePrimaryCtxRelease"};
  if (call.error() != cudaSuccess) return static_cast<CUresult>(call.error());
  const auto found = card().retained.find(device);
  if (found == card().retained.end()) {
    report_mistake("a context is released that is not retained");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  card().retained.erase(found);
  return CUDA_SUCCESS;
}

CUresult push(CUcontext context) {
  const EmulatedCall call{"cuCtxPushCurrent"};
  if (call.error() != cudaSuccess) return static_cast<CUresult>(call.error());
  const int device = device_of(context);
  if (!has_device(device) || card().retained.count(device) == 0) {
    report_mistake("a context is made current that is not retained");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  card_thread().before.push_back(card_thread().device);
  card_thread().device = device;
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* context) {
  const EmulatedCall call{"cuCtxPopCurrent"};
  CardThread& thread = card_thread();
  if (thread.before.empty()) {
    report_mistake("a context is popped that was not pushed");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *context = context_of(thread.device);
  thread.device = thread.before.back();
  thread.before.pop_back();
  return static_cast<CUresult>(call.error());
}

}  // namespace

void* find_context_function(const std::string& name) {
  static const auto& all = *new std::map<std::string, void*>{
      {"cuDeviceGetUuid", reinterpret_cast<void*>(&get_uuid)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&retain)},
      {"cuDevicePrimaryCtxRelease", reinterpret_cast<void*>(&release)},
      {"cuCtxPushCurrent", reinterpret_cast<void*>(&push)},
      {"cuCtxPopCurrent", reinterpret_cast<void*>(&pop)}};
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace spillway::emulated
