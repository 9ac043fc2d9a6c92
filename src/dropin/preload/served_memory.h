#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "src/dropin/preload/real_runtime.h"
#include "um/bytes.h"
#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

/// The environment's settings for the preloaded library itself.
struct PreloadOptions {
  um::Bytes min;       ///< smaller allocations go to the CUDA runtime
  bool is_quiet;       ///< prints no warnings
  bool has_report;     ///< prints a line of counters when the process ends
  bool is_understood;  ///< false when `min` is invalid; then nothing is served
};

/// Reads SPILLWAY_UM_PRELOAD_LEAST (default 1 MiB), SPILLWAY_UM_PRELOAD_QUIET=1 and
/// SPILLWAY_UM_PRELOAD_REPORT=1.
[[nodiscard]] PreloadOptions read_preload_options() noexcept;

/// Serves the program's CUDA allocations from the default space, which the first large enough
/// allocation makes. When that fails, nothing is served in this process, and a warning says why.
///
/// Constant-initialised and never destroyed, because programs allocate before main and free at
/// exit. Thread safety: any thread may call every function.
class ServedMemory {
 public:
  /// Returns null when the CUDA runtime must serve the request.
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
  /// As above. Also returns null while `stream` is captured, because its allocations belong to its
  /// graph.
  [[nodiscard]] void* allocate_async(std::size_t bytes, CudaStream stream) noexcept;

  /// Returns whether `address` lies in the served range, freed or not, which no other allocator
  /// uses.
  [[nodiscard]] bool has(const void* address) const noexcept;
  /// Waits for the GPU like cudaFree. Requires: has(address).
  [[nodiscard]] CudaStatus free(void* address) noexcept;
  /// Requires: has(address).
  [[nodiscard]] CudaStatus free_async(void* address, CudaStream stream) noexcept;
  void count_foreign_free() noexcept { ++foreign_frees_; }

  [[nodiscard]] const PreloadOptions& options() noexcept;
  /// Returns a line for people, without the newline. Throws: std::bad_alloc.
  [[nodiscard]] std::string report() const;

 private:
  using Count = std::atomic<std::uint64_t>;

  [[nodiscard]] bool is_wanted(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_on_this_device() const noexcept;
  [[nodiscard]] void* take(std::size_t bytes, CudaStream stream) noexcept;
  void open_space() noexcept;
  void warn(const char* sentence) const noexcept;
  void count_served(const void* address, std::size_t bytes) noexcept;

  std::once_flag options_read_;
  PreloadOptions options_{};
  std::once_flag space_asked_for_;
  std::atomic<bool> has_space_{false};
  spillway_um_space space_{};
  std::int32_t ordinal_ = -1;  // number of the space's GPU

  // All served memory lies between these addresses: a space is one contiguous slab.
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX};
  std::atomic<std::uintptr_t> end_{0};

  Count served_{0};
  Count served_bytes_{0};
  Count freed_{0};
  Count small_{0};
  Count refused_{0};
  Count elsewhere_{0};  // on another device or in a capture
  Count foreign_frees_{0};
};

/// Returns the instance of the process, since C functions have no object to hold it.
[[nodiscard]] ServedMemory& served_memory() noexcept;

}  // namespace spillway::dropin
