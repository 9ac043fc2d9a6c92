// Emulates CUDA's runtime on the CPU: device memory is process memory, and enqueued work is done
// when the call returns, unless a test holds it.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <utility>

#include "tests/src/cuda/processor/function_status.h"
#include "tests/src/cuda/processor/grid_run.h"
#include "tests/src/cuda/processor/memory_watch.h"

namespace processor = spillway::processor;

namespace {

cudaError_t function_status = cudaSuccess;

// The stream's work that a test holds.
struct Held {
  bool is_on = false;
  std::deque<std::function<void()>> work;
  std::uint64_t enqueued = 0;

  void give(std::function<void()> next) {
    ++enqueued;
    if (is_on) {
      work.push_back(std::move(next));
    } else {
      next();
    }
  }
  // Does the first `count` pieces of work ever enqueued.
  void finish(std::uint64_t count) {
    for (std::uint64_t ended = enqueued - work.size(); ended < count; ++ended) {
      work.front()();
      work.pop_front();
    }
  }
};
Held held;

constexpr std::align_val_t kAlignment{256};
// For writes outside a block, which happen after they are reported.
constexpr std::size_t kAround = 4096;

const std::byte* bytes(const void* memory) { return static_cast<const std::byte*>(memory); }

}  // namespace

int processor::launch(CUstream_st* /*stream*/, const Launch& launch, std::function<void()> thread) {
  run_grid(launch, thread);  // a fault is thrown: a later call would report a device's error late
  return cudaSuccess;
}

struct CUevent_st {
  std::uint64_t after = 0;  // pieces of work
};

processor::LateCopies::LateCopies() { held.is_on = true; }
processor::LateCopies::~LateCopies() {
  held.finish(held.enqueued);
  held.is_on = false;
}

void processor::set_function_status(cudaError_t status) { function_status = status; }

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorInvalidValue ? "invalid argument" : "another error";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorInvalidValue ? "cudaErrorInvalidValue" : "cudaErrorUnknown";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaMalloc(void** memory, std::size_t size) {
  *memory = static_cast<std::byte*>(::operator new(size + 2 * kAround, kAlignment)) + kAround;
  processor::add_block(bytes(*memory), size);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  processor::remove_block(bytes(memory));
  ::operator delete(static_cast<std::byte*>(memory) - kAround, kAlignment);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int byte, std::size_t size) {
  if (!processor::is_in_a_block(bytes(memory), size)) return cudaErrorInvalidValue;
  std::memset(memory, byte, size);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t size, cudaStream_t /*stream*/) {
  if (!processor::is_in_a_block(bytes(memory), size)) return cudaErrorInvalidValue;
  held.give([=] { std::memset(memory, byte, size); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t /*stream*/) {
  const void* const of_device = kind == cudaMemcpyHostToDevice ? to : from;
  if (!processor::is_in_a_block(bytes(of_device), size)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDeviceToDevice && !processor::is_in_a_block(bytes(to), size)) {
    return cudaErrorInvalidValue;
  }
  if (size > 0) held.give([=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  const cudaError_t status = cudaMemcpyAsync(to, from, size, kind, nullptr);
  held.finish(held.enqueued);
  return status;
}

cudaError_t cudaDeviceSynchronize() {
  held.finish(held.enqueued);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return cudaDeviceSynchronize(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t /*stream*/) {
  event->after = held.enqueued;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  held.finish(event->after);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* /*attributes*/, const void* /*function*/) {
  return function_status;
}
