#pragma once

#include <atomic>

#include "src/dropin/preload/cuda_status.h"

namespace spillway::dropin {

/// A function of the process's shared CUDA runtime, behind this library's of the same name.
/// Constant-initialised, so that it may be called before and after everything else.
///
/// Thread safety: every function may be called from any thread.
template <class... Arguments>
class RealFunction {
 public:
  explicit constexpr RealFunction(const char* name) : name_{name} {}

  /// kCudaNoSuchFunction when no runtime that has it is loaded.
  CudaStatus operator()(Arguments... arguments) const noexcept;

 private:
  const char* name_;
  mutable std::atomic<void*> address_{nullptr};
};

/// The next `name` behind this library; where the program opened its runtime for itself alone, as
/// Python does with its modules', that runtime's. Null: none is loaded.
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

}  // namespace spillway::dropin
