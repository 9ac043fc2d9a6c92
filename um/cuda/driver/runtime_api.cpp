#include "um/cuda/driver/runtime_api.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <chrono>
#include <memory>
#include <type_traits>
#include <vector>

#include "um/cuda/driver/check.h"
#include "um/cuda/driver/discards.h"
#include "um/cuda/driver/far_room.h"
#include "um/cuda/driver/relaxed_capture.h"
#include "um/error.h"

namespace spillway::um {
namespace {

// The driver numbers its errors as the runtime does.
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

// A batch as the driver wants it.
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

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { (void)cudaGraphDestroy(graph); }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

class RuntimeApi final : public CudaApi {
 public:
  explicit RuntimeApi(int ordinal) : ordinal_{ordinal} {
    enter();
    facts_ = read_facts(ordinal_);
    discards_ = find_discards(facts_.driver_version);
    facts_.has_discard = discards_.are_there() && facts_.has_concurrent_managed_access;
  }

  [[nodiscard]] CudaFacts facts() override { return facts_; }

  [[nodiscard]] NearMemory memory() override {
    enter();
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    return {.free = Bytes{free}, .total = Bytes{total}};
  }

  [[nodiscard]] cudaStream_t make_stream(const std::string& name) override {
    enter();
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    nvtxNameCudaStreamA(stream, name.c_str());
    return stream;
  }
  void end_stream(cudaStream_t stream) noexcept override { forget(cudaStreamDestroy(stream)); }
  void synchronize(cudaStream_t stream) override {
    enter();
    check(cudaStreamSynchronize(stream));
  }
  [[nodiscard]] bool is_captured(cudaStream_t stream) override {
    enter();
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t status = cudaStreamIsCapturing(stream, &capture);
    if (status == cudaErrorStreamCaptureImplicit) {
      (void)cudaGetLastError();
      return true;
    }
    check(status);
    return capture != cudaStreamCaptureStatusNone;
  }

  // Relaxed: a library may load what it runs for the first time.
  void begin_capture(cudaStream_t stream) override {
    enter();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  [[nodiscard]] cudaGraphExec_t end_capture(cudaStream_t stream) override {
    enter();
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream, &captured));
    const CapturedGraph graph{captured};
    cudaGraphExec_t ready = nullptr;
    check(cudaGraphInstantiate(&ready, graph.get(), 0));
    return ready;
  }
  void abandon_capture(cudaStream_t stream) noexcept override {
    cudaGraph_t captured = nullptr;
    forget(cudaStreamEndCapture(stream, &captured));
    const CapturedGraph ended{captured};
  }
  void launch(cudaGraphExec_t graph, cudaStream_t stream) override {
    enter();
    check(cudaGraphLaunch(graph, stream));
  }
  void end_graph(cudaGraphExec_t graph) noexcept override { forget(cudaGraphExecDestroy(graph)); }

  [[nodiscard]] cudaEvent_t make_event() override {
    enter();
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
    return event;
  }
  void end_event(cudaEvent_t event) noexcept override { forget(cudaEventDestroy(event)); }
  void record(cudaEvent_t event, cudaStream_t stream) override {
    enter();
    check(cudaEventRecord(event, stream));
  }
  void wait(cudaStream_t stream, cudaEvent_t event) override {
    enter();
    check(cudaStreamWaitEvent(stream, event, 0));
  }
  [[nodiscard]] bool has_fired(cudaEvent_t event) override {
    enter();
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
    enter();
    const RelaxedCapture relaxed;
    check(cudaEventSynchronize(event));
  }
  [[nodiscard]] Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) override {
    enter();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from, to));
    return std::chrono::duration_cast<Nanoseconds>(
        std::chrono::duration<double, std::milli>{static_cast<double>(milliseconds)});
  }

  [[nodiscard]] std::byte* allocate_device(Bytes size) override {
    void* address = nullptr;
    return taken(cudaMalloc(entered(&address), size.count()), address, size, "device memory");
  }
  void free_device(std::byte* address) noexcept override { forget(cudaFree(address)); }
  [[nodiscard]] std::byte* allocate_managed(Bytes size) override {
    void* address = nullptr;
    return taken(cudaMallocManaged(entered(&address), size.count(), cudaMemAttachGlobal), address,
                 size, "unified memory");
  }
  void free_managed(std::byte* address) noexcept override { forget(cudaFree(address)); }
  [[nodiscard]] std::byte* allocate_pinned(Bytes size) override {
    expect_far_room(size, "pin " + to_string(size) + " of RAM");
    void* address = nullptr;
    const cudaError_t status = cudaHostAlloc(entered(&address), size.count(), cudaHostAllocDefault);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw OutOfMemory{"the driver cannot pin " + to_string(size) + " of RAM; " + kFarAdvice};
    }
    check(status);
    return static_cast<std::byte*>(address);
  }
  void free_pinned(std::byte* address) noexcept override { forget(cudaFreeHost(address)); }

  void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) override {
    enter();
    check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyDefault, stream));
  }

  void prefetch(Range range, MemoryTier tier, cudaStream_t stream) override {
    enter();
    check(prefetch_range(range, location(tier, ordinal_), stream));
  }
  void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) override {
    bring(discards_.discard_and_prefetch, ranges, stream);
  }
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    enter_driver();
    Batch batch{ranges};
    check_driver(
        discards_.discard(batch.addresses.data(), batch.sizes.data(), ranges.size(), 0, stream));
  }
  void advise(Range range, Advice advice) override;

  void begin_label(const std::string& name) override { nvtxRangePushA(name.c_str()); }
  void end_label() override { nvtxRangePop(); }

 private:
  // The device of a thread is the runtime's state, and 0 for a new one. The runtime is asked each
  // time: the program may have chosen another device since.
  void enter() const {
    int current = -1;
    if (cudaGetDevice(&current) == cudaSuccess && current == ordinal_) return;
    check(cudaSetDevice(ordinal_));
  }
  // The driver's own functions want a context too, which only this gives to a new thread.
  void enter_driver() const { check(cudaSetDevice(ordinal_)); }
  void** entered(void** address) const {
    enter();
    return address;
  }

  // At the end of a process the driver may be gone before its objects.
  static void forget(cudaError_t status) noexcept {
    if (status != cudaSuccess) (void)cudaGetLastError();
  }

  std::byte* taken(cudaError_t status, void* address, Bytes size, const char* what) {
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
    enter_driver();
    Batch batch{ranges};
    CUmemLocation near{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal_};
    std::size_t first = 0;
    check_driver(call(batch.addresses.data(), batch.sizes.data(), ranges.size(), &near, &first, 1,
                      0, stream));
  }

  const int ordinal_;
  CudaFacts facts_;
  Discards discards_;
};

void RuntimeApi::advise(Range range, Advice advice) {
  enter();
  const auto give = [&](cudaMemoryAdvise what, MemoryTier tier) {
    check(cudaMemAdvise(range.data(), range.size(), what, location(tier, ordinal_)));
  };
  give(advice == Advice::kReadMostly ? cudaMemAdviseSetReadMostly : cudaMemAdviseUnsetReadMostly,
       MemoryTier::kNear);
  give(cudaMemAdviseSetPreferredLocation,
       advice == Advice::kPreferFar ? MemoryTier::kFar : MemoryTier::kNear);
}

}  // namespace

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
