#pragma once

#include <atomic>

namespace spillway::dropin {

/// cudaError_t, cudaStream_t and cudaStreamCaptureStatus in the ABI of the CUDA runtime, because
/// this library is built without CUDA.
using CudaStatus = int;
using CudaStream = void*;
using CudaCapture = int;

inline constexpr CudaStatus kCudaSuccess = 0;
inline constexpr CudaStatus kCudaInvalidValue = 1;
inline constexpr CudaStatus kCudaNoSuchFunction = 302;  // cudaErrorSharedObjectSymbolNotFound
inline constexpr CudaStatus kCudaUnknown = 999;
inline constexpr CudaCapture kCudaCapturesNothing = 0;

/// A function of the process's shared CUDA runtime that this library replaces.
/// Constant-initialised, so that it can be called before main and at exit.
///
/// Thread safety: any thread may call every function.
template <class... Arguments>
class RealFunction {
 public:
  explicit constexpr RealFunction(const char* name) : name_{name} {}

  /// Returns kCudaNoSuchFunction when no loaded runtime has the function.
  CudaStatus operator()(Arguments... arguments) const noexcept;

 private:
  const char* name_;
  mutable std::atomic<void*> address_{nullptr};
};

/// Returns the next `name` after this library. If the program loaded its runtime privately, as
/// Python modules do, returns that runtime's function. Returns null when no runtime is loaded.
[[nodiscard]] void* find_real_function(const char* name) noexcept;

template <class... Arguments>
CudaStatus RealFunction<Arguments...>::operator()(Arguments... arguments) const noexcept {
  void* address = address_.load(std::memory_order_relaxed);
  if (address == nullptr) {
    address = find_real_function(name_);
    address_.store(address, std::memory_order_relaxed);
  }
  if (address == nullptr) return kCudaNoSuchFunction;
  return reinterpret_cast<CudaStatus (*)(Arguments...)>(address)(arguments...);
}

/// Returns whether the program's CUDA runtime is statically linked, so that its calls bypass this
/// library. This is so if no shared runtime is loaded, but the driver is, or the executable has GPU
/// code. A program without both at its start is checked again at its end.
[[nodiscard]] bool is_bypassed() noexcept;

}  // namespace spillway::dropin
