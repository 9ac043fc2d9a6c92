// Memory served from the default space, the real CUDA runtime behind it, and the messages at the
// start and end of a process.
#include "src/dropin/preload/served_memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
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

}  // namespace

PreloadOptions read_preload_options() noexcept {
  const std::optional<um::Bytes> min = read_min();
  return {.min = min.value_or(um::Bytes{}),
          .is_quiet = is_on("SPILLWAY_UM_PRELOAD_QUIET"),
          .has_report = is_on("SPILLWAY_UM_PRELOAD_REPORT"),
          .is_understood = min.has_value()};
}

namespace {

/// A path, or "".
using LoadedPath = std::array<char, PATH_MAX>;

struct Search {
  std::string_view name;
  LoadedPath found{};
};

int visit(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  Search& search = *static_cast<Search*>(data);
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!file.starts_with(search.name) || path.size() >= search.found.size()) return 0;
  std::memcpy(search.found.data(), path.data(), path.size());
  return 1;
}

// Returns the path of the first loaded library with a file name that begins with `name`:
// "libcudart.so" finds libcudart.so.13. Complexity: O(loaded libraries).
LoadedPath loaded_library(const char* name) noexcept {
  Search search{.name = name};
  dl_iterate_phdr(&visit, &search);
  return search.found;
}

}  // namespace

void* find_real_function(const char* name) noexcept {
  void* const next = dlsym(RTLD_NEXT, name);
  if (next != nullptr) return next;
  const LoadedPath path = loaded_library("libcudart.so");
  if (path.front() == '\0') return nullptr;
  void* const runtime = dlopen(path.data(), RTLD_LAZY | RTLD_NOLOAD);
  return runtime == nullptr ? nullptr : dlsym(runtime, name);
}

namespace {

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

}  // namespace

ServedMemory& served_memory() noexcept {
  static constinit ServedMemory memory;
  return memory;
}

// --- serving

void* ServedMemory::allocate(std::size_t bytes) noexcept {
  if (!is_wanted(bytes)) return nullptr;
  if (is_on_this_device()) return take(bytes);
  ++elsewhere_;
  return nullptr;
}

void* ServedMemory::allocate_async(std::size_t bytes, CudaStream stream) noexcept {
  if (!is_wanted(bytes)) return nullptr;
  if (is_on_this_device() && (ordinal_ < 0 || !is_captured(stream))) return take(bytes);
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

void* ServedMemory::take(std::size_t bytes) noexcept {
  void* address = nullptr;
  if (spillway_um_allocate(space_, bytes, kAlignment, &address) != SPILLWAY_UM_OK) {
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

namespace {

/// The bytes of a file, or none.
class MappedFile {
 public:
  explicit MappedFile(const char* path) noexcept {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
      const auto size = static_cast<std::size_t>(facts.st_size);
      void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) bytes_ = {static_cast<const char*>(mapped), size};
    }
    close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  /// Returns `count` elements at `offset`; null when the file is too short.
  template <class T>
  [[nodiscard]] const T* at(std::size_t offset, std::size_t count) const noexcept {
    const bool fits = offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T);
    return fits ? reinterpret_cast<const T*>(bytes_.data() + offset) : nullptr;
  }

 private:
  std::string_view bytes_;
};

/// Returns whether the executable has the section `name`.
bool has_section(std::string_view name) noexcept {
  const MappedFile file{"/proc/self/exe"};
  const auto* const header = file.at<ElfW(Ehdr)>(0, 1);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* const sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr || header->e_shstrndx >= header->e_shnum) return false;
  const ElfW(Shdr)& table = sections[header->e_shstrndx];
  const char* const names = file.at<char>(table.sh_offset, table.sh_size);
  if (names == nullptr) return false;
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const std::size_t begin = sections[i].sh_name;
    const bool fits = begin < table.sh_size && name.size() < table.sh_size - begin;
    if (fits && std::string_view{names + begin, name.size()} == name &&
        names[begin + name.size()] == '\0') {
      return true;
    }
  }
  return false;
}

bool is_loaded(const char* name) noexcept { return loaded_library(name).front() != '\0'; }

// Returns whether the program's CUDA runtime is statically linked, so that its calls bypass this
// library. This is so if no shared runtime is loaded, but the driver is, or the executable has GPU
// code. A program without both at its start is checked again at its end.
bool is_bypassed() noexcept {
  if (is_loaded("libcudart.so")) return false;
  return is_loaded("libcuda.so") || has_section(".nv_fatbin");
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

}  // namespace spillway::dropin
