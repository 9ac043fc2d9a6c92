#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "um/bytes.h"
#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

/// What the environment says about the preloaded library itself.
struct PreloadOptions {
  um::Bytes min;       ///< smaller allocations are the CUDA runtime's
  bool is_quiet;       ///< no warning is printed
  bool has_report;     ///< a line of counters is printed when the process ends
  bool is_understood;  ///< false: `least` is no size, and nothing is served
};

/// SPILLWAY_UM_PRELOAD_LEAST (1 MiB unless given), SPILLWAY_UM_PRELOAD_QUIET=1 and
/// SPILLWAY_UM_PRELOAD_REPORT=1.
[[nodiscard]] PreloadOptions read_preload_options() noexcept;

/// cudaError_t, cudaStream_t and cudaStreamCaptureStatus as the CUDA runtime's functions pass them:
/// this library is built where there is no CUDA.
using CudaStatus = int;
using CudaStream = void*;
using CudaCapture = int;

inline constexpr CudaStatus kCudaSuccess = 0;
inline constexpr CudaStatus kCudaInvalidValue = 1;
inline constexpr CudaStatus kCudaNoSuchFunction = 302;  // cudaErrorSharedObjectSymbolNotFound
inline constexpr CudaStatus kCudaUnknown = 999;
inline constexpr CudaCapture kCudaCapturesNothing = 0;

/// What a program that asks the CUDA runtime for memory gets from the default space, which is made
/// at the first allocation that is large enough. When it cannot be made, nothing is served in this
/// process, and a warning says why.
///
/// Constant-initialised and never destroyed: programs allocate before main and free at exit.
/// Thread safety: every function may be called from any thread.
class ServedMemory {
 public:
  /// Null: the CUDA runtime is to be asked.
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
  /// The same; also null when `stream` is being captured, whose allocations are of its graph.
  [[nodiscard]] void* allocate_async(std::size_t bytes, CudaStream stream) noexcept;

  /// Whether `address` lies where allocations were served, freed or not: it is then nobody else's.
  [[nodiscard]] bool has(const void* address) const noexcept;
  /// Waits for the GPU, as cudaFree does. Requires: has(address).
  [[nodiscard]] CudaStatus free(void* address) noexcept;
  /// Requires: has(address).
  [[nodiscard]] CudaStatus free_async(void* address, CudaStream stream) noexcept;
  void count_foreign_free() noexcept { ++foreign_frees_; }

  [[nodiscard]] const PreloadOptions& options() noexcept;
  /// For people, without a line's end. Throws: std::bad_alloc.
  [[nodiscard]] std::string report() const;

 private:
  using Count = std::atomic<std::uint64_t>;

  [[nodiscard]] bool is_wanted(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_on_this_device() const noexcept;
  [[nodiscard]] void* take(std::size_t bytes) noexcept;
  void open_space() noexcept;
  void warn(const char* sentence) const noexcept;
  void count_served(const void* address, std::size_t bytes) noexcept;

  std::once_flag options_read_;
  PreloadOptions options_{};
  std::once_flag space_asked_for_;
  std::atomic<bool> has_space_{false};
  spillway_um_space space_{};
  std::int32_t ordinal_ = -1;  // of the space's GPU

  // A space is one slab: nothing of others lies between two of its allocations.
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX};
  std::atomic<std::uintptr_t> end_{0};

  Count served_{0};
  Count served_bytes_{0};
  Count freed_{0};
  Count small_{0};
  Count refused_{0};
  Count elsewhere_{0};  // on another device, or in a capture
  Count foreign_frees_{0};
};

/// The process's own: C functions have no object to keep it in.
[[nodiscard]] ServedMemory& served_memory() noexcept;

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
