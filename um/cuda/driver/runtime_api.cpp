#include "um/cuda/driver/runtime_api.h"

#include <cuda.h>  // types only: the driver's library is never linked
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "um/cuda/driver/api.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::um {
namespace {

/// Driver entry points added by CUDA 13, declared as in its headers. A program built with older
/// headers can use them with a newer driver.
struct Discards {
  using DiscardAndPrefetch = CUresult (*)(CUdeviceptr*, std::size_t*, std::size_t, CUmemLocation*,
                                          std::size_t*, std::size_t, unsigned long long, CUstream);
  using Discard = CUresult (*)(CUdeviceptr*, std::size_t*, std::size_t, unsigned long long,
                               CUstream);

  DiscardAndPrefetch discard_and_prefetch = nullptr;
  Discard discard = nullptr;
  [[nodiscard]] bool are_there() const {
    return discard_and_prefetch != nullptr && discard != nullptr;
  }
};

constexpr int kFirstWithDiscards = 13000;

// Returns the driver's function as of CUDA `version`; null if it has none.
void* find_in_driver(const char* name, int version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t status = cudaGetDriverEntryPointByVersion(
      name, &function, static_cast<unsigned>(version), cudaEnableDefault, &found);
  const bool is_there = status == cudaSuccess && found == cudaDriverEntryPointSuccess;
#else  // this form rejects names newer than itself, but can return the finder itself
  using Finder =
      CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  void* finder = nullptr;
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuGetProcAddress", &finder, cudaEnableDefault, &found);
  const bool is_there =
      status == cudaSuccess && found == cudaDriverEntryPointSuccess &&
      reinterpret_cast<Finder>(finder)(name, &function, version, 0, nullptr) == CUDA_SUCCESS;
#endif
  if (status != cudaSuccess) (void)cudaGetLastError();
  return is_there ? function : nullptr;
}

// Returns the driver's discard functions; none if it is older than 13.0. An older driver may have
// functions of these names with other parameters.
Discards find_discards(int driver_version) {
  if (driver_version < kFirstWithDiscards) return {};
  return {.discard_and_prefetch = reinterpret_cast<Discards::DiscardAndPrefetch>(
              find_in_driver("cuMemDiscardAndPrefetchBatchAsync", kFirstWithDiscards)),
          .discard = reinterpret_cast<Discards::Discard>(
              find_in_driver("cuMemDiscardBatchAsync", kFirstWithDiscards))};
}

constexpr int kOldest = 12000;  // the driver functions below are as of this CUDA

// Returns "GPU-" and the device's number as nvidia-smi prints it; empty if the driver does not say.
// A MIG slice has a number of its own, although it shares the PCI address of its GPU.
std::string find_uuid(int ordinal) {
  using Get = CUresult (*)(CUuuid*, CUdevice);
  const auto get = reinterpret_cast<Get>(find_in_driver("cuDeviceGetUuid", kOldest));
  CUuuid uuid{};
  if (get == nullptr || get(&uuid, ordinal) != CUDA_SUCCESS) return {};
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}

/// Lets the calling thread query events while another thread captures a stream. Otherwise the
/// driver refuses the query and invalidates the capture. The queried events are never part of a
/// capture.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // afterwards: the previous mode
};

// Driver and runtime share their error numbers.
void check_driver(CUresult status, Caller where = Caller::here()) {
  check(static_cast<cudaError_t>(status), where);
}

#if CUDART_VERSION >= 13000
using Location = cudaMemLocation;
Location location(MemoryTier tier, int ordinal) {
  return tier == MemoryTier::kNear ? Location{.type = cudaMemLocationTypeDevice, .id = ordinal}
                                   : Location{.type = cudaMemLocationTypeHost, .id = 0};
}
cudaError_t prefetch_range(Range range, Location to, cudaStream_t stream) {
  return cudaMemPrefetchAsync(range.data(), range.size(), to, 0, stream);
}
#else
using Location = int;
Location location(MemoryTier tier, int ordinal) {
  return tier == MemoryTier::kNear ? ordinal : cudaCpuDeviceId;
}
cudaError_t prefetch_range(Range range, Location to, cudaStream_t stream) {
  return cudaMemPrefetchAsync(range.data(), range.size(), to, stream);
}
#endif

// A batch of ranges in the driver's form.
struct Batch {
  explicit Batch(std::span<const Range> ranges) {
    for (const Range& range : ranges) {
      addresses.push_back(reinterpret_cast<CUdeviceptr>(range.data()));
      sizes.push_back(range.size());
    }
  }
  std::vector<CUdeviceptr> addresses;
  std::vector<std::size_t> sizes;
};

// Ignores an error: at process exit the driver may be gone before its objects.
void forget(cudaError_t status) noexcept {
  if (status != cudaSuccess) (void)cudaGetLastError();
}

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { (void)cudaGraphDestroy(graph); }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

/// The context of a device, which any thread can enter and leave. Unlike cudaSetDevice(), leaving
/// creates no context on the device that the thread returns to.
class DeviceContext {
 public:
  explicit DeviceContext(int ordinal)
      : ordinal_{ordinal},
        retain_{reinterpret_cast<Retain>(find_in_driver("cuDevicePrimaryCtxRetain", kOldest))},
        release_{reinterpret_cast<Release>(find_in_driver("cuDevicePrimaryCtxRelease", kOldest))},
        push_{reinterpret_cast<Push>(find_in_driver("cuCtxPushCurrent", kOldest))},
        pop_{reinterpret_cast<Pop>(find_in_driver("cuCtxPopCurrent", kOldest))} {}
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;
  ~DeviceContext() {
    if (context_ != nullptr) (void)release_(ordinal_);
  }

  [[nodiscard]] int ordinal() const { return ordinal_; }
  /// Makes the context current in the calling thread. pop() must follow each success.
  [[nodiscard]] cudaError_t push() noexcept {
    const cudaError_t status = retain();
    return status == cudaSuccess ? static_cast<cudaError_t>(push_(context_)) : status;
  }
  void pop() noexcept {
    CUcontext popped = nullptr;
    (void)pop_(&popped);
  }

 private:
  using Retain = CUresult (*)(CUcontext*, CUdevice);
  using Release = CUresult (*)(CUdevice);
  using Push = CUresult (*)(CUcontext);
  using Pop = CUresult (*)(CUcontext*);

  // Creates the context if the process has none on the device.
  [[nodiscard]] cudaError_t retain() noexcept {
    const std::lock_guard lock{mutex_};
    if (context_ != nullptr) return cudaSuccess;
    const bool is_known =
        retain_ != nullptr && release_ != nullptr && push_ != nullptr && pop_ != nullptr;
    return is_known ? static_cast<cudaError_t>(retain_(&context_, ordinal_))
                    : cudaErrorNotSupported;
  }

  const int ordinal_;  // of the driver, too
  const Retain retain_;
  const Release release_;
  const Push push_;
  const Pop pop_;
  std::mutex mutex_;  // guards the context until it exists
  CUcontext context_ = nullptr;
};

/// Makes a device current in the calling thread until its destruction. Asks the runtime each time,
/// since the program may have chosen another device.
class OnDevice {
 public:
  explicit OnDevice(DeviceContext& device) : device_{device} { check(enter()); }
  /// Stays on the current device if the other one cannot be entered.
  OnDevice(DeviceContext& device, std::nothrow_t /*tag*/) noexcept : device_{device} {
    forget(enter());
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    if (is_entered_) device_.pop();
  }

  /// Creates a context where a new thread has none, for functions of the driver.
  void make_context() const {
    if (!is_entered_) check(cudaSetDevice(device_.ordinal()));
  }

 private:
  [[nodiscard]] cudaError_t enter() noexcept {
    int now = 0;
    cudaError_t status = cudaGetDevice(&now);
    if (status != cudaSuccess || now == device_.ordinal()) return status;
    status = device_.push();
    is_entered_ = status == cudaSuccess;
    return status;
  }

  DeviceContext& device_;
  bool is_entered_ = false;
};

class RuntimeApi final : public CudaApi {
 public:
  explicit RuntimeApi(int ordinal) : ordinal_{ordinal}, device_{ordinal} {
    facts_ = read_facts(ordinal_);
    facts_.uuid = find_uuid(ordinal_);
    discards_ = find_discards(facts_.driver_version);
    facts_.has_discard = discards_.are_there() && facts_.has_concurrent_managed_access;
  }

  [[nodiscard]] CudaFacts facts() override { return facts_; }
  void enter_thread() noexcept override { forget(cudaSetDevice(ordinal_)); }

  [[nodiscard]] NearMemory memory() override {
    const OnDevice here{device_};
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    return {.free = Bytes{free}, .total = Bytes{total}};
  }

  [[nodiscard]] cudaStream_t make_stream(const std::string& name) override {
    const OnDevice here{device_};
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    nvtxNameCudaStreamA(stream, name.c_str());
    return stream;
  }
  void end_stream(cudaStream_t stream) noexcept override {
    const OnDevice here{device_, std::nothrow};
    forget(cudaStreamDestroy(stream));
  }
  void synchronize(cudaStream_t stream) override {
    const OnDevice here{device_};
    check(cudaStreamSynchronize(stream));
  }
  [[nodiscard]] bool is_captured(cudaStream_t stream) override {
    const OnDevice here{device_};
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t status = cudaStreamIsCapturing(stream, &capture);
    if (status == cudaErrorStreamCaptureImplicit) {
      (void)cudaGetLastError();
      return true;
    }
    check(status);
    return capture != cudaStreamCaptureStatusNone;
  }

  // Uses the relaxed mode because a library may load modules at first use.
  void begin_capture(cudaStream_t stream) override {
    const OnDevice here{device_};
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  [[nodiscard]] cudaGraphExec_t end_capture(cudaStream_t stream) override {
    const OnDevice here{device_, std::nothrow};  // the capture ends in any case
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream, &captured));
    const CapturedGraph graph{captured};
    cudaGraphExec_t ready = nullptr;
    check(cudaGraphInstantiate(&ready, graph.get(), 0));
    return ready;
  }
  void abandon_capture(cudaStream_t stream) noexcept override {
    const OnDevice here{device_, std::nothrow};
    cudaGraph_t captured = nullptr;
    forget(cudaStreamEndCapture(stream, &captured));
    const CapturedGraph ended{captured};
  }
  void launch(cudaGraphExec_t graph, cudaStream_t stream) override {
    const OnDevice here{device_};
    check(cudaGraphLaunch(graph, stream));
  }
  void end_graph(cudaGraphExec_t graph) noexcept override {
    const OnDevice here{device_, std::nothrow};
    forget(cudaGraphExecDestroy(graph));
  }

  [[nodiscard]] cudaEvent_t make_event() override {
    const OnDevice here{device_};
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
    return event;
  }
  void end_event(cudaEvent_t event) noexcept override {
    const OnDevice here{device_, std::nothrow};
    forget(cudaEventDestroy(event));
  }
  void record(cudaEvent_t event, cudaStream_t stream) override {
    const OnDevice here{device_};
    check(cudaEventRecord(event, stream));
  }
  void wait(cudaStream_t stream, cudaEvent_t event) override {
    const OnDevice here{device_};
    check(cudaStreamWaitEvent(stream, event, 0));
  }
  [[nodiscard]] bool has_fired(cudaEvent_t event) override {
    const OnDevice here{device_};
    const RelaxedCapture relaxed;
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return false;
    }
    check(status);
    return true;
  }
  void synchronize(cudaEvent_t event) override {
    const OnDevice here{device_};
    const RelaxedCapture relaxed;
    check(cudaEventSynchronize(event));
  }
  [[nodiscard]] Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) override {
    const OnDevice here{device_};
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from, to));
    return std::chrono::duration_cast<Nanoseconds>(
        std::chrono::duration<double, std::milli>{static_cast<double>(milliseconds)});
  }

  [[nodiscard]] std::byte* allocate_device(Bytes size) override {
    return taken([&](void** address) { return cudaMalloc(address, size.count()); }, size,
                 "device memory");
  }
  void free_device(std::byte* address) noexcept override { free_on_device(address); }
  [[nodiscard]] std::byte* allocate_managed(Bytes size) override {
    return taken(
        [&](void** address) {
          return cudaMallocManaged(address, size.count(), cudaMemAttachGlobal);
        },
        size, "unified memory");
  }
  void free_managed(std::byte* address) noexcept override { free_on_device(address); }
  [[nodiscard]] std::byte* allocate_pinned(Bytes size) override {
    expect_far_room(size, "pin " + to_string(size) + " of RAM");
    const OnDevice here{device_};
    void* address = nullptr;
    const cudaError_t status = cudaHostAlloc(&address, size.count(), cudaHostAllocDefault);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw OutOfMemory{"the driver cannot pin " + to_string(size) + " of RAM; " + kFarAdvice};
    }
    check(status);
    return static_cast<std::byte*>(address);
  }
  void free_pinned(std::byte* address) noexcept override {
    const OnDevice here{device_, std::nothrow};
    forget(cudaFreeHost(address));
  }

  void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) override {
    const OnDevice here{device_};
    check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyDefault, stream));
  }

  void prefetch(Range range, MemoryTier tier, cudaStream_t stream) override {
    const OnDevice here{device_};
    check(prefetch_range(range, location(tier, ordinal_), stream));
  }
  void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) override {
    bring(discards_.discard_and_prefetch, ranges, stream);
  }
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    const OnDevice here{device_};
    here.make_context();
    Batch batch{ranges};
    check_driver(
        discards_.discard(batch.addresses.data(), batch.sizes.data(), ranges.size(), 0, stream));
  }
  void advise(Range range, Advice advice) override;

  void begin_label(const std::string& name) override { nvtxRangePushA(name.c_str()); }
  void end_label() override { nvtxRangePop(); }

 private:
  void free_on_device(std::byte* address) noexcept {
    const OnDevice here{device_, std::nothrow};
    forget(cudaFree(address));
  }

  // Returns the result of `allocate`, which stores an address at the pointer it receives.
  template <class Allocate>
  std::byte* taken(const Allocate& allocate, Bytes size, const char* what) {
    const OnDevice here{device_};
    void* address = nullptr;
    const cudaError_t status = allocate(&address);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      const NearMemory near = memory();
      throw OutOfMemory{"there is no room for " + to_string(size) + " of " + what +
                        " (the GPU has " + to_string(near.free) + " of " + to_string(near.total) +
                        " free); use a smaller budget or batch"};
    }
    check(status);
    return static_cast<std::byte*>(address);
  }

  void bring(Discards::DiscardAndPrefetch call, std::span<const Range> ranges,
             cudaStream_t stream) {
    const OnDevice here{device_};
    here.make_context();
    Batch batch{ranges};
    CUmemLocation near{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal_};
    std::size_t first = 0;
    check_driver(call(batch.addresses.data(), batch.sizes.data(), ranges.size(), &near, &first, 1,
                      0, stream));
  }

  const int ordinal_;
  DeviceContext device_;
  CudaFacts facts_;
  Discards discards_;
};

void RuntimeApi::advise(Range range, Advice advice) {
  const OnDevice here{device_};
  const auto give = [&](cudaMemoryAdvise what, MemoryTier tier) {
    check(cudaMemAdvise(range.data(), range.size(), what, location(tier, ordinal_)));
  };
  give(advice == Advice::kReadMostly ? cudaMemAdviseSetReadMostly : cudaMemAdviseUnsetReadMostly,
       MemoryTier::kNear);
  give(cudaMemAdviseSetPreferredLocation,
       advice == Advice::kPreferFar ? MemoryTier::kFar : MemoryTier::kNear);
}

}  // namespace

std::optional<std::string> why_unusable(const DriverAnswer& answer, int ordinal) {
  const std::string otherwise = ", or use --device host";
  if (answer.driver_version == 0) {
    return "there is no NVIDIA driver on this machine; install one" + otherwise;
  }
  if (answer.status == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is too old: it knows CUDA " + version_text(answer.driver_version) +
           " and this program needs " + version_text(answer.runtime_version) + "; update it" +
           otherwise;
  }
  if (answer.status == cudaErrorNoDevice || (answer.status == cudaSuccess && answer.devices == 0)) {
    return "the NVIDIA driver finds no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES" +
           otherwise;
  }
  if (answer.status != cudaSuccess) {
    return "the GPU does not answer (" + answer.status_text + "); look at nvidia-smi" + otherwise;
  }
  if (ordinal < 0 || ordinal >= answer.devices) {
    return "there is no cuda:" + std::to_string(ordinal) +
           "; the GPUs are cuda:0 to cuda:" + std::to_string(answer.devices - 1);
  }
  return std::nullopt;
}

DriverAnswer ask_driver() {
  DriverAnswer answer;
  const cudaError_t status = cudaGetDeviceCount(&answer.devices);
  if (status != cudaSuccess) answer.devices = 0;
  answer.status = status;
  answer.status_text = cudaGetErrorString(status);
  (void)cudaGetLastError();
  if (cudaDriverGetVersion(&answer.driver_version) != cudaSuccess) answer.driver_version = 0;
  if (cudaRuntimeGetVersion(&answer.runtime_version) != cudaSuccess) answer.runtime_version = 0;
  return answer;
}

std::unique_ptr<CudaApi> open_runtime_api(int ordinal) {
  return std::make_unique<RuntimeApi>(ordinal);
}

}  // namespace spillway::um
