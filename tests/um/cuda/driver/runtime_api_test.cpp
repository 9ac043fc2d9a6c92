// The calls that RuntimeApi makes to CUDA's runtime, and its use of the results.
#include "um/cuda/driver/runtime_api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <thread>
#include <vector>

#include "tests/um/cuda/driver/stand_in_cudart.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::um {
namespace {

using Calls = std::vector<std::string>;

constexpr int kOrdinal = 1;  // the stand-in has two GPUs, and threads begin on the first one
constexpr Bytes kSize = 4_KiB;

template <class Failure>
std::string sentence_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

/// One call of each kind, with its expected runtime calls.
struct Call {
  std::string name;
  std::string function;  ///< the runtime's function that does it
  Calls asked;
  std::function<void(CudaApi&)> make;
};

class RuntimeApiTest : public testing::Test {
 protected:
  RuntimeApiTest() {
    stand_in::reset();
    api = open_runtime_api(kOrdinal);
    static_cast<void>(stand_in::take_calls());
  }
  /// Returns the calls made from a thread with the first device current, without those that enter
  /// the other device's context, once for each of `times`, and leave it.
  static Calls calls_on_device(std::size_t times = 1) {
    Calls calls = stand_in::take_calls();
    std::erase(calls, "cuDevicePrimaryCtxRetain 1 on 0");
    EXPECT_EQ(std::ranges::count(calls, "cuCtxPushCurrent 1 on 0"), times);
    EXPECT_EQ(std::erase(calls, "cuCtxPopCurrent on 1"), times);
    EXPECT_EQ(calls.front(), "cuCtxPushCurrent 1 on 0");
    std::erase(calls, "cuCtxPushCurrent 1 on 0");
    EXPECT_EQ(stand_in::current_device(), 0);
    return calls;
  }

  std::unique_ptr<CudaApi> api;
};

/// Provides a stream s1, the events e1 and e2, a graph and memory.
class CallsOfRuntimeApi : public RuntimeApiTest {
 protected:
  CallsOfRuntimeApi() {
    stream = api->make_stream("a name");
    event = api->make_event();
    later = api->make_event();
    graph = api->end_capture(stream);
    static_cast<void>(stand_in::take_calls());
  }
  void TearDown() override {
    stand_in::fail("", cudaSuccess);
    api->end_graph(graph);
    api->end_event(event);
    api->end_event(later);
    api->end_stream(stream);
    api.reset();
    EXPECT_EQ(stand_in::live_objects(), 0U);
  }

  [[nodiscard]] std::vector<Call> all() {
    return {
        {"memory",
         "cudaMemGetInfo",
         {"cudaMemGetInfo on 1"},
         [](CudaApi& with) { static_cast<void>(with.memory()); }},
        {"synchronize",
         "cudaStreamSynchronize",
         {"cudaStreamSynchronize s1 on 1"},
         [this](CudaApi& with) { with.synchronize(stream); }},
        {"is_captured",
         "cudaStreamIsCapturing",
         {"cudaStreamIsCapturing default on 1"},
         [](CudaApi& with) { static_cast<void>(with.is_captured(nullptr)); }},
        {"begin_capture",
         "cudaStreamBeginCapture",
         {"cudaStreamBeginCapture s1 relaxed on 1"},
         [this](CudaApi& with) { with.begin_capture(stream); }},
        {"launch",
         "cudaGraphLaunch",
         {"cudaGraphLaunch in s1 on 1"},
         [this](CudaApi& with) { with.launch(graph, stream); }},
        {"record",
         "cudaEventRecord",
         {"cudaEventRecord e2 in s1 on 1"},
         [this](CudaApi& with) { with.record(later, stream); }},
        {"wait",
         "cudaStreamWaitEvent",
         {"cudaStreamWaitEvent s1 for e1 on 1"},
         [this](CudaApi& with) { with.wait(stream, event); }},
        {"has_fired",
         "cudaEventQuery",
         {"cudaEventQuery e1 on 1"},
         [this](CudaApi& with) { EXPECT_TRUE(with.has_fired(event)); }},
        {"synchronize an event",
         "cudaEventSynchronize",
         {"cudaEventSynchronize e1 on 1"},
         [this](CudaApi& with) { with.synchronize(event); }},
        {"elapsed",
         "cudaEventElapsedTime",
         {"cudaEventElapsedTime e1 to e2 on 1"},
         [this](CudaApi& with) { EXPECT_EQ(with.elapsed(event, later).count(), 1'500'000); }},
        {"copy",
         "cudaMemcpy",
         {"cudaMemcpy 4096 in s1 on 1"},
         [this](CudaApi& with) { with.copy(from, to.data(), stream); }},
        {"prefetch near",
         "cudaMemPrefetch",
         {"cudaMemPrefetch 4096 to device 1 in s1 on 1"},
         [this](CudaApi& with) { with.prefetch(to, MemoryTier::kNear, stream); }},
        {"prefetch far",
         "cudaMemPrefetch",
         {"cudaMemPrefetch 4096 to host in s1 on 1"},
         [this](CudaApi& with) { with.prefetch(to, MemoryTier::kFar, stream); }},
        {"discard",
         "discard",
         {"discard 1024 2048 in s1 on 1"},
         [this](CudaApi& with) { with.discard(parts, stream); }},
        {"discard and prefetch",
         "discard_and_prefetch",
         {"discard_and_prefetch 1024 2048 to device 1 in s1 on 1"},
         [this](CudaApi& with) { with.discard_and_prefetch_near(parts, stream); }},
        {"advise near",
         "cudaMemAdvise",
         {"cudaMemAdvise 4096 not read mostly on 1",
          "cudaMemAdvise 4096 preferred at device 1 on 1"},
         [this](CudaApi& with) { with.advise(to, Advice::kPreferNear); }},
        {"advise far",
         "cudaMemAdvise",
         {"cudaMemAdvise 4096 not read mostly on 1", "cudaMemAdvise 4096 preferred at host on 1"},
         [this](CudaApi& with) { with.advise(to, Advice::kPreferFar); }},
        {"advise read mostly",
         "cudaMemAdvise",
         {"cudaMemAdvise 4096 read mostly on 1", "cudaMemAdvise 4096 preferred at device 1 on 1"},
         [this](CudaApi& with) { with.advise(to, Advice::kReadMostly); }},
    };
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaEvent_t later = nullptr;
  cudaGraphExec_t graph = nullptr;
  std::vector<std::byte> from = std::vector<std::byte>(kSize.count(), std::byte{7});
  std::vector<std::byte> memory = std::vector<std::byte>(kSize.count());
  Range to{memory};
  std::array<Range, 2> parts{to.first(1024), to.subspan(1024, 2048)};
};

TEST_F(CallsOfRuntimeApi, AskForWhatTheirNamesSayOnTheirDevice) {
  for (const Call& call : all()) {
    SCOPED_TRACE(call.name);
    call.make(*api);
    EXPECT_EQ(calls_on_device(), call.asked);
  }
  EXPECT_EQ(memory, from);
}

TEST_F(CallsOfRuntimeApi, ChangeNothingWhereTheDeviceIsCurrent) {
  api->enter_thread();
  EXPECT_EQ(stand_in::take_calls(), Calls{"cudaSetDevice 1 on 0"});
  for (const Call& call : all()) {
    SCOPED_TRACE(call.name);
    call.make(*api);
    Calls calls = stand_in::take_calls();
    // Driver functions need a context, which the runtime makes when a device is set.
    EXPECT_EQ(std::erase(calls, "cudaSetDevice 1 on 1"),
              call.name.starts_with("discard") ? 1U : 0U);
    EXPECT_EQ(calls, call.asked);
    EXPECT_EQ(stand_in::current_device(), kOrdinal);
  }
}

TEST_F(CallsOfRuntimeApi, ThrowWhatFailsAndLeaveTheDeviceAndNoErrorBehind) {
  for (const Call& call : all()) {
    SCOPED_TRACE(call.name);
    stand_in::fail(call.function, cudaErrorIllegalAddress);
    const std::string sentence = sentence_of<CudaError>([&] { call.make(*api); });
    EXPECT_TRUE(sentence.starts_with("the GPU failed: some failure (cudaErrorOfSomeKind at "))
        << sentence;
    EXPECT_EQ(stand_in::current_device(), 0);
    EXPECT_EQ(stand_in::last_error(), cudaSuccess);  // does not leak into the program's next call
    EXPECT_EQ(stand_in::capture_mode(), cudaStreamCaptureModeGlobal);
  }
}

TEST_F(CallsOfRuntimeApi, ThrowWhereTheCurrentDeviceIsNotKnown) {
  stand_in::fail("cudaGetDevice", cudaErrorDevicesUnavailable);
  for (const Call& call : all()) {
    SCOPED_TRACE(call.name);
    EXPECT_THROW(call.make(*api), CudaError);
    EXPECT_EQ(stand_in::take_calls(), Calls{});
    EXPECT_EQ(stand_in::last_error(), cudaSuccess);
  }
}

TEST_F(CallsOfRuntimeApi, ThrowWhereTheDeviceCannotBeChosen) {
  stand_in::fail("cuCtxPushCurrent", cudaErrorDevicesUnavailable);
  for (const Call& call : all()) {
    SCOPED_TRACE(call.name);
    EXPECT_THROW(call.make(*api), CudaError);
    EXPECT_EQ(stand_in::take_calls(), Calls{"cuCtxPushCurrent 1 on 0"});
  }
  stand_in::fail("cudaSetDevice", cudaErrorDevicesUnavailable);
  api->enter_thread();  // throws nothing: the next call does
  EXPECT_EQ(stand_in::last_error(), cudaSuccess);
}

// --- objects

TEST_F(RuntimeApiTest, MakesStreamsThatWaitForNoOtherAndHaveAName) {
  auto* const stream = api->make_stream("um in");
  EXPECT_EQ(calls_on_device(),
            (Calls{"cudaStreamCreate apart on 1", "nvtxNameCudaStream s1 um in on 1"}));
  api->end_stream(stream);
  stand_in::fail("cudaStreamCreate", cudaErrorIllegalAddress);
  EXPECT_THROW(static_cast<void>(api->make_stream("another")), CudaError);
  EXPECT_EQ(stand_in::live_objects(), 1U);  // the context
}

TEST_F(RuntimeApiTest, MakesEventsThatKeepTheirTimeAndWhoseWaiterSleeps) {
  auto* const event = api->make_event();
  EXPECT_EQ(calls_on_device(), Calls{"cudaEventCreate timed, sleeping on 1"});
  api->end_event(event);
  stand_in::fail("cudaEventCreate", cudaErrorIllegalAddress);
  EXPECT_THROW(static_cast<void>(api->make_event()), CudaError);
  EXPECT_EQ(stand_in::live_objects(), 1U);  // the context
}

TEST_F(RuntimeApiTest, TellsAnEventThatHasNotFiredFromAFailure) {
  auto* const event = api->make_event();
  stand_in::machine().has_fired = false;
  EXPECT_FALSE(api->has_fired(event));
  EXPECT_EQ(stand_in::last_error(), cudaSuccess);
  api->end_event(event);
}

TEST_F(RuntimeApiTest, TakesAStreamForCapturedThatIsOrThatAnotherOneMakesSo) {
  EXPECT_FALSE(api->is_captured(nullptr));
  stand_in::machine().capture = cudaStreamCaptureStatusActive;
  EXPECT_TRUE(api->is_captured(nullptr));
  stand_in::machine().capture = cudaStreamCaptureStatusNone;
  stand_in::fail("cudaStreamIsCapturing", cudaErrorStreamCaptureImplicit);
  EXPECT_TRUE(api->is_captured(nullptr));
  EXPECT_EQ(stand_in::last_error(), cudaSuccess);
}

TEST_F(CallsOfRuntimeApi, MakeAGraphReadyAndGiveBackWhatWasCaptured) {
  const std::size_t before = stand_in::live_objects();
  auto* const ready = api->end_capture(stream);
  EXPECT_EQ(calls_on_device(), (Calls{"cudaStreamEndCapture s1 on 1", "cudaGraphInstantiate on 1",
                                      "cudaGraphDestroy on 1"}));
  EXPECT_EQ(stand_in::live_objects(), before + 1);
  api->end_graph(ready);
  stand_in::fail("cudaGraphInstantiate", cudaErrorIllegalAddress);
  EXPECT_THROW(static_cast<void>(api->end_capture(stream)), CudaError);
  api->abandon_capture(stream);
  EXPECT_EQ(stand_in::live_objects(), before);
}

// A capture that went on would refuse all later work of its stream.
TEST_F(CallsOfRuntimeApi, EndACaptureEvenWhereTheDeviceCannotBeChosen) {
  for (const char* const choosing : {"cudaGetDevice", "cuCtxPushCurrent"}) {
    stand_in::fail(choosing, cudaErrorDevicesUnavailable);
    api->end_graph(api->end_capture(stream));
    EXPECT_EQ(std::ranges::count(stand_in::take_calls(), "cudaStreamEndCapture s1 on 0"), 1)
        << choosing;
  }
}

// Otherwise the runtime would create a context of some hundred MiB on the thread's device.
TEST_F(CallsOfRuntimeApi, EndObjectsOnTheirDeviceInAThreadThatHasChosenNone) {
  std::byte* const device = api->allocate_device(kSize);
  std::byte* const managed = api->allocate_managed(kSize);
  std::byte* const pinned = api->allocate_pinned(kSize);
  auto* const ended = api->make_stream("ended");
  auto* const fired = api->make_event();
  auto* const launched = api->end_capture(stream);
  static_cast<void>(stand_in::take_calls());
  std::thread{[&] {
    api->free_device(device);
    api->free_managed(managed);
    api->free_pinned(pinned);
    api->end_stream(ended);
    api->end_event(fired);
    api->end_graph(launched);
    api->abandon_capture(stream);
    EXPECT_EQ(calls_on_device(7),
              (Calls{"cudaFree on 1", "cudaFree on 1", "cudaFreeHost on 1",
                     "cudaStreamDestroy on 1", "cudaEventDestroy on 1", "cudaGraphExecDestroy on 1",
                     "cudaStreamEndCapture s1 on 1", "cudaGraphDestroy on 1"}));
  }}.join();
}

TEST_F(RuntimeApiTest, EndsThrowNothingAndLeaveNoErrorBehind) {
  auto* const stream = api->make_stream("a name");
  auto* const event = api->make_event();
  std::byte* const device = api->allocate_device(kSize);
  std::byte* const pinned = api->allocate_pinned(kSize);
  const std::vector<std::pair<std::string, std::function<void()>>> ends{
      {"cudaStreamDestroy", [&] { api->end_stream(stream); }},
      {"cudaEventDestroy", [&] { api->end_event(event); }},
      {"cudaStreamEndCapture", [&] { api->abandon_capture(stream); }},
      {"cudaGraphExecDestroy", [&] { api->end_graph(nullptr); }},
      {"cudaFree", [&] { api->free_device(device); }},
      {"cudaFreeHost", [&] { api->free_pinned(pinned); }}};
  for (const auto& [function, end] : ends) {
    stand_in::fail(function, cudaErrorCudartUnloading);
    end();
    EXPECT_EQ(stand_in::last_error(), cudaSuccess) << function;
  }
  stand_in::fail("", cudaSuccess);
  for (const auto& [function, end] : ends) {
    if (function != "cudaGraphExecDestroy") end();
  }
  EXPECT_EQ(stand_in::live_objects(), 1U);  // the context
  api.reset();
  EXPECT_EQ(stand_in::live_objects(), 0U);
}

TEST_F(RuntimeApiTest, NamesRangesForProfilers) {
  api->begin_label("conv1");
  api->end_label();
  EXPECT_EQ(stand_in::take_calls(), (Calls{"nvtxRangePush conv1 on 0", "nvtxRangePop on 0"}));
}

// --- memory

/// One of the three kinds of memory.
struct Kind {
  std::string function;
  std::byte* (CudaApi::*allocate)(Bytes);
  void (CudaApi::*free)(std::byte*) noexcept;
  std::string sentence;  ///< the error when there is none
};

const std::array kKinds{
    Kind{"cudaMalloc", &CudaApi::allocate_device, &CudaApi::free_device,
         "there is no room for 4.00 KiB of device memory (the GPU has 3.00 GiB of 4.00 GiB free); "
         "use a "
         "smaller budget or batch"},
    Kind{"cudaMallocManaged", &CudaApi::allocate_managed, &CudaApi::free_managed,
         "there is no room for 4.00 KiB of unified memory (the GPU has 3.00 GiB of 4.00 GiB free); "
         "use a "
         "smaller budget or batch"},
    Kind{"cudaHostAlloc", &CudaApi::allocate_pinned, &CudaApi::free_pinned,
         "the driver cannot pin 4.00 KiB of RAM; use a larger budget or a smaller batch, so that "
         "less "
         "has to be far"}};

TEST_F(RuntimeApiTest, GivesTheMemoryThatTheRuntimeAllocated) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.function);
    std::byte* const address = ((*api).*kind.allocate)(kSize);
    EXPECT_EQ(calls_on_device(), Calls{kind.function + " 4096 on 1"});
    ASSERT_NE(address, nullptr);
    std::memset(address, 7, kSize.count());
    EXPECT_EQ(stand_in::live_objects(), 2U);  // the memory and the context
    ((*api).*kind.free)(address);
    EXPECT_EQ(stand_in::live_objects(), 1U);
    static_cast<void>(stand_in::take_calls());
  }
}

TEST_F(RuntimeApiTest, SaysWhatToDoWhenThereIsNoMemory) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.function);
    stand_in::fail(kind.function, cudaErrorMemoryAllocation);
    const auto allocate = [&] { static_cast<void>(((*api).*kind.allocate)(kSize)); };
    EXPECT_EQ(sentence_of<OutOfMemory>(allocate), kind.sentence);
    EXPECT_EQ(stand_in::last_error(), cudaSuccess);
    EXPECT_EQ(stand_in::current_device(), 0);
    stand_in::fail(kind.function, cudaErrorIllegalAddress);
    EXPECT_THROW(allocate(), CudaError);
    EXPECT_EQ(stand_in::current_device(), 0);
  }
  EXPECT_EQ(stand_in::live_objects(), 1U);  // the context
}

TEST_F(RuntimeApiTest, TellsWhatIsFree) {
  EXPECT_EQ(api->memory().free, 3_GiB);
  EXPECT_EQ(api->memory().total, 4_GiB);
}

// --- facts

TEST(FactsOfRuntimeApi, AreTheDevicesAndChangeNoThreads) {
  stand_in::reset();
  const CudaFacts facts = open_runtime_api(kOrdinal)->facts();
  EXPECT_EQ(facts.name, "Stand-in 1");
  EXPECT_EQ(facts.ordinal, 1);
  EXPECT_EQ(facts.compute_capability, 90);
  EXPECT_EQ(facts.memory, 4_GiB);
  EXPECT_EQ(facts.pci_bus, "0000:01:00.0");
  EXPECT_EQ(facts.uuid, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
  EXPECT_EQ(facts.driver_version, 13000);
  EXPECT_TRUE(facts.has_concurrent_managed_access);
  EXPECT_TRUE(facts.has_discard);
  EXPECT_FALSE(facts.is_integrated);
  EXPECT_EQ(stand_in::current_device(), 0);
  stand_in::reset({.is_integrated = true});
  EXPECT_TRUE(open_runtime_api(kOrdinal)->facts().is_integrated);
}

TEST(FactsOfRuntimeApi, HaveDiscardsWhereTheDriverAndTheGpuHaveThem) {
  stand_in::reset({.driver_version = 12080});
  EXPECT_FALSE(open_runtime_api(0)->facts().has_discard);
  stand_in::reset({.has_concurrent_managed_access = false});
  EXPECT_FALSE(open_runtime_api(0)->facts().has_discard);
  stand_in::reset();
  stand_in::fail("cudaGetDriverEntryPoint", cudaErrorSymbolNotFound);
  EXPECT_FALSE(open_runtime_api(0)->facts().has_discard);
  EXPECT_EQ(open_runtime_api(0)->facts().uuid, "");
  EXPECT_EQ(stand_in::last_error(), cudaSuccess);
}

TEST(FactsOfRuntimeApi, ThrowWhatTheRuntimeRefuses) {
  for (const char* function :
       {"cudaGetDeviceProperties", "cudaDriverGetVersion", "cudaRuntimeGetVersion",
        "cudaDeviceGetAttribute", "cudaDeviceGetPCIBusId"}) {
    stand_in::reset();
    stand_in::fail(function, cudaErrorIllegalAddress);
    EXPECT_THROW(static_cast<void>(open_runtime_api(0)), CudaError) << function;
    EXPECT_EQ(stand_in::last_error(), cudaSuccess);
  }
}

TEST(AskDriver, TellsWhatItAnswersAndLeavesNoErrorBehind) {
  stand_in::reset();
  EXPECT_EQ(ask_driver().devices, 2);
  EXPECT_EQ(ask_driver().driver_version, 13000);
  stand_in::fail("cudaGetDeviceCount", cudaErrorNoDevice);
  EXPECT_EQ(ask_driver().devices, 0);
  EXPECT_EQ(ask_driver().status, cudaErrorNoDevice);
  EXPECT_EQ(ask_driver().status_text, "some failure");
  EXPECT_EQ(stand_in::last_error(), cudaSuccess);
  stand_in::fail("cudaDriverGetVersion", cudaErrorInitializationError);
  EXPECT_EQ(ask_driver().driver_version, 0);
}

// --- the threads of a device

/// Returns the chosen devices, by calls that end in "on N".
Calls chosen_devices() {
  Calls chosen = stand_in::take_calls();
  std::erase_if(chosen, [](const std::string& call) { return !call.starts_with("cudaSetDevice"); });
  return chosen;
}

// Switching back to another device creates a context there, of some hundred MiB.
TEST(DeviceOfTheRuntime, IsTheOnlyOneThatItsOwnThreadsChoose) {
  stand_in::reset();
  OpenCuda open = open_cuda(kOrdinal);
  EXPECT_EQ(stand_in::current_device(), kOrdinal);
  Ledger ledger{64_MiB};
  {
    const auto space = open.device->make_managed_space(
        {.size = 16_MiB, .near = 16_MiB, .page = 2_MiB, .writes_are_declared = true}, ledger);
    space->hints().prefetch(space->slab(), MemoryTier::kNear, [](const auto&) {});
    space->hints().discard(space->slab());
    space->hints().check();
    std::pmr::memory_resource& batches = open.device->batch_memory();
    std::thread{[&] { batches.deallocate(batches.allocate(4096), 4096); }}.join();
    open.compute->synchronize();
  }
  for (const std::string& choice : chosen_devices()) {
    EXPECT_TRUE(choice.starts_with("cudaSetDevice 1 ")) << choice;
  }
}

TEST(DeviceOfTheRuntime, LeavesAForeignThreadItsOwn) {
  stand_in::reset();
  const auto device = open_cuda_device(kOrdinal);
  Ledger ledger{64_MiB};
  const auto space = device->make_managed_space(
      {.size = 16_MiB, .near = 16_MiB, .page = 2_MiB, .writes_are_declared = true}, ledger);
  const auto event = device->program_stream(nullptr)->record({});
  event->wait();
  EXPECT_EQ(stand_in::current_device(), 0);
  for (const std::string& choice : chosen_devices()) {
    EXPECT_TRUE(choice.starts_with("cudaSetDevice 1 ")) << choice;  // by the device's own threads
  }
}

}  // namespace
}  // namespace spillway::um
