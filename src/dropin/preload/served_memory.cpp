#include "src/dropin/preload/served_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "um/bytes.h"

namespace spillway::dropin {
namespace {

using namespace um::literals;

constexpr um::Bytes kMin = 1_MiB;

bool is_on(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

std::optional<um::Bytes> read_min() noexcept {
  const char* const text = std::getenv("SPILLWAY_UM_PRELOAD_LEAST");
  if (text == nullptr) return kMin;
  try {
    return um::parse_bytes(text);
  } catch (...) {
    return std::nullopt;
  }
}

// Writes "spillway_um_preload: PROGRAM: TEXT" and a newline to standard error.
void write_line(std::string_view text) noexcept {
  dprintf(STDERR_FILENO, "spillway_um_preload: %s: %.*s\n", program_invocation_short_name,
          static_cast<int>(text.size()), text.data());
}

constexpr std::size_t kAlignment = 512;  // programs observe this for cudaMalloc

constinit const RealFunction<int*> kGetDevice{"cudaGetDevice"};
constinit const RealFunction<int> kSetDevice{"cudaSetDevice"};
constinit const RealFunction<> kSynchronizeDevice{"cudaDeviceSynchronize"};
constinit const RealFunction<CudaStream, CudaCapture*> kIsCapturing{"cudaStreamIsCapturing"};

CudaStatus wait_for_gpu(int ordinal) noexcept {
  int current = ordinal;
  static_cast<void>(kGetDevice(&current));
  if (current != ordinal) static_cast<void>(kSetDevice(ordinal));
  const CudaStatus status = kSynchronizeDevice();
  if (current != ordinal) static_cast<void>(kSetDevice(current));
  return status;
}

/// The default stream fails the query while a stream that synchronizes with it is captured; this
/// counts as captured.
bool is_captured(CudaStream stream) noexcept {
  CudaCapture captures = kCudaCapturesNothing;
  return kIsCapturing(stream, &captures) != kCudaSuccess || captures != kCudaCapturesNothing;
}

CudaStatus cuda_status_of(spillway_um_status status) noexcept {
  if (status == SPILLWAY_UM_OK) return kCudaSuccess;
  return status == SPILLWAY_UM_NOT_ALLOCATED ? kCudaInvalidValue : kCudaUnknown;
}

constinit std::atomic<bool> has_warned{false};

void warn_of_bypass() noexcept {
  if (has_warned || served_memory().options().is_quiet || !is_bypassed()) return;
  has_warned = true;
  write_line(
      "its CUDA runtime is linked into it, so its allocations are not seen here; link it with "
      "nvcc -cudart shared");
}

[[gnu::constructor]] void start() { warn_of_bypass(); }

/// Warns again for programs that loaded the driver in the meantime.
[[gnu::destructor]] void end() {
  warn_of_bypass();
  if (!served_memory().options().has_report) return;
  try {
    write_line(served_memory().report());
  } catch (const std::bad_alloc&) {
    write_line("no memory for a report");
  }
}

}  // namespace

PreloadOptions read_preload_options() noexcept {
  const std::optional<um::Bytes> min = read_min();
  return {.min = min.value_or(um::Bytes{}),
          .is_quiet = is_on("SPILLWAY_UM_PRELOAD_QUIET"),
          .has_report = is_on("SPILLWAY_UM_PRELOAD_REPORT"),
          .is_understood = min.has_value()};
}

ServedMemory& served_memory() noexcept {
  static constinit ServedMemory memory;
  return memory;
}

// --- serving

void* ServedMemory::allocate(std::size_t bytes) noexcept {
  if (!is_wanted(bytes)) return nullptr;
  if (is_on_this_device()) return take(bytes, nullptr);
  ++elsewhere_;
  return nullptr;
}

void* ServedMemory::allocate_async(std::size_t bytes, CudaStream stream) noexcept {
  if (!is_wanted(bytes)) return nullptr;
  if (is_on_this_device() && (ordinal_ < 0 || !is_captured(stream))) {
    return take(bytes, stream);
  }
  ++elsewhere_;
  return nullptr;
}

bool ServedMemory::is_wanted(std::size_t bytes) noexcept {
  if (!options().is_understood) return false;
  if (bytes == 0 || um::Bytes{bytes} < options().min) {
    ++small_;
    return false;
  }
  std::call_once(space_asked_for_, [this] { open_space(); });
  if (!has_space_) ++refused_;
  return has_space_;
}

/// Returns whether the current device is the space's. On the host every device is the same.
bool ServedMemory::is_on_this_device() const noexcept {
  int current = -1;
  return ordinal_ < 0 || (kGetDevice(&current) == kCudaSuccess && current == ordinal_);
}

void* ServedMemory::take(std::size_t bytes, CudaStream stream) noexcept {
  void* address = nullptr;
  if (spillway_um_allocate_async(space_, bytes, kAlignment, stream, &address) != SPILLWAY_UM_OK) {
    ++refused_;
    return nullptr;
  }
  count_served(address, bytes);
  return address;
}

void ServedMemory::count_served(const void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + bytes;
  for (auto low = lowest_.load(); begin < low && !lowest_.compare_exchange_weak(low, begin);) {
  }
  for (auto high = end_.load(); end > high && !end_.compare_exchange_weak(high, end);) {
  }
  ++served_;
  served_bytes_ += bytes;
}

bool ServedMemory::has(const void* address) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= lowest_ && at < end_;
}

CudaStatus ServedMemory::free(void* address) noexcept {
  const CudaStatus waited = ordinal_ < 0 ? kCudaSuccess : wait_for_gpu(ordinal_);
  const CudaStatus freed = cuda_status_of(spillway_um_free(space_, address));
  if (freed != kCudaSuccess) return freed;
  ++freed_;
  return waited;  // cudaFree reports earlier failures, too
}

CudaStatus ServedMemory::free_async(void* address, CudaStream stream) noexcept {
  const bool is_on_host = ordinal_ < 0;
  // A captured stream cannot free memory from outside its graph; cudaFreeAsync returns the same.
  if (!is_on_host && is_captured(stream)) return kCudaInvalidValue;
  const CudaStatus freed =
      cuda_status_of(spillway_um_free_async(space_, address, is_on_host ? nullptr : stream));
  if (freed == kCudaSuccess) ++freed_;
  return freed;
}

// --- the space

const PreloadOptions& ServedMemory::options() noexcept {
  std::call_once(options_read_, [this] {
    options_ = read_preload_options();
    if (!options_.is_understood) warn("SPILLWAY_UM_PRELOAD_LEAST is no size; write 1MiB, say");
  });
  return options_;
}

void ServedMemory::open_space() noexcept {
  if (spillway_um_default(&space_) == SPILLWAY_UM_OK &&
      spillway_um_device(space_, &ordinal_) == SPILLWAY_UM_OK) {
    has_space_ = true;
  } else {
    warn(spillway_um_last_error());
  }
}

void ServedMemory::warn(const char* sentence) const noexcept {
  if (options_.is_quiet) return;
  try {
    write_line("the CUDA runtime serves all: " + std::string{sentence});
  } catch (const std::bad_alloc&) {
    write_line(sentence);
  }
}

std::string ServedMemory::report() const {
  const auto text = [](const Count& count) { return std::to_string(count.load()); };
  spillway_um_counters of_space{};
  of_space.version = SPILLWAY_UM_COUNTERS_VERSION;
  if (has_space_) static_cast<void>(spillway_um_get_counters(space_, &of_space));
  return "allocations: " + text(served_) + " served (" + um::to_string(um::Bytes{served_bytes_}) +
         "), " + text(small_) + " small, " + text(refused_) + " refused, " + text(elsewhere_) +
         " on other devices or captured; frees: " + text(freed_) + " served, " +
         text(foreign_frees_) +
         " of the CUDA runtime's; moved: " + um::to_string(um::Bytes{of_space.bytes_prefetched}) +
         " near, " + um::to_string(um::Bytes{of_space.bytes_offloaded}) + " far";
}

}  // namespace spillway::dropin
