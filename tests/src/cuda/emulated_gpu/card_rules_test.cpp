#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card.h"
#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

// Every mistake that the emulated GPU promises to find ends the process with a sentence; what is
// right does not.

namespace spillway::emulated {
namespace {

constexpr std::size_t kSize = 4U << 20U;

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}
cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  return event;
}
std::byte* on_device(std::size_t size = kSize) {
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, size), cudaSuccess);
  return static_cast<std::byte*>(address);
}
std::byte* managed(std::size_t size = kSize) {
  void* address = nullptr;
  EXPECT_EQ(cudaMallocManaged(&address, size, cudaMemAttachGlobal), cudaSuccess);
  return static_cast<std::byte*>(address);
}
std::byte* pinned(std::size_t size = kSize) {
  void* address = nullptr;
  EXPECT_EQ(cudaHostAlloc(&address, size, cudaHostAllocDefault), cudaSuccess);
  return static_cast<std::byte*>(address);
}
constexpr cudaMemLocation kNear{.type = cudaMemLocationTypeDevice, .id = 0};
constexpr cudaMemLocation kFar{.type = cudaMemLocationTypeHost, .id = 0};

void read(std::byte* address, std::size_t size, cudaStream_t stream) {
  (void)enqueue(stream, {.name = "reader", .accesses = {{address, size, false}}, .compute = [] {}});
}
void write(std::byte* address, std::size_t size, cudaStream_t stream) {
  (void)enqueue(stream, {.name = "writer", .accesses = {{address, size, true}}, .compute = [] {}});
}

/// A mistake, and words of its sentence; none if it is not a mistake.
struct CardRule {
  std::string name;
  std::string sentence;
  std::function<void()> act;
  std::string settings{};
};

void PrintTo(const CardRule& rule, std::ostream* out) { *out << rule.name; }  // NOLINT

const std::vector<CardRule>& rules() {
  static const std::vector<CardRule> all{
      {"KernelBehindABlock", "reader reads memory that is not in one live block",
       [] {
         cudaStream_t stream = make_stream();
         read(on_device(100), 101, stream);
       }},
      {"KernelOnFreedMemory", "writer writes memory that is not in one live block",
       [] {
         cudaStream_t stream = make_stream();
         std::byte* const memory = on_device();
         EXPECT_EQ(cudaFree(memory), cudaSuccess);
         write(memory, 1, stream);
       }},
      {"CopyBehindABlock", "beyond a block",
       [] { (void)cudaMemcpyAsync(on_device(10), on_device(10), 11, cudaMemcpyDefault, nullptr); }},
      {"CopyAgainstItsDirection", "direction",
       [] {
         (void)cudaMemcpyAsync(on_device(), on_device(), 10, cudaMemcpyHostToDevice, make_stream());
       }},
      {"CopyBetweenHosts", "direction",
       [] { (void)cudaMemcpyAsync(pinned(), pinned(), 10, cudaMemcpyDefault, make_stream()); }},
      {"CopyOverItself", "overlaps",
       [] {
         std::byte* const memory = on_device();
         (void)cudaMemcpyAsync(memory, memory + 5, 10, cudaMemcpyDefault, make_stream());
       }},
      {"MemsetOfHostMemory", "not in one live block",
       [] {
         std::byte local{};
         (void)cudaMemsetAsync(&local, 0, 1, make_stream());
       }},
      {"FreeTwice", "freed already",
       [] {
         std::byte* const memory = on_device();
         (void)cudaFree(memory);
         (void)cudaFree(memory);
       }},
      {"FreePinnedAsDevice", "not allocated so", [] { (void)cudaFree(pinned()); }},
      {"DestroyedStream", "does not exist",
       [] {
         cudaStream_t stream = make_stream();
         (void)cudaStreamDestroy(stream);
         read(on_device(), 1, stream);
       }},
      {"StreamOfAnotherDevice", "another device",
       [] {
         cudaStream_t stream = make_stream();
         std::byte* const memory = on_device();
         (void)cudaSetDevice(1);
         read(memory, 1, stream);
       },
       "devices=2"},
      {"EventOfAnotherDevice", "another device",
       [] {
         cudaStream_t stream = make_stream();
         (void)cudaSetDevice(1);
         (void)cudaEventRecord(make_event(), stream);
       },
       "devices=2"},
      {"PrefetchOfDeviceMemory", "not managed",
       [] { (void)cudaMemPrefetchAsync(on_device(), kSize, kNear, 0, make_stream()); }},
      {"PrefetchWithoutHints", "without hints",
       [] { (void)cudaMemPrefetchAsync(managed(), kSize, kNear, 0, make_stream()); },
       "kind=no-hints"},
      {"CapturedPrefetch", "captured",
       [] {
         cudaStream_t stream = make_stream();
         std::byte* const memory = managed();
         (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         (void)cudaMemPrefetchAsync(memory, kSize, kNear, 0, stream);
       }},
      {"AdviceAboutDeviceMemory", "not managed",
       [] { (void)cudaMemAdvise(on_device(), kSize, cudaMemAdviseSetPreferredLocation, kNear); }},
      {"SynchronizesACapture", "captured",
       [] {
         cudaStream_t stream = make_stream();
         (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         (void)cudaStreamSynchronize(stream);
       }},
      {"AllocatesBesideACapture", "while a stream is captured",
       [] {
         (void)cudaStreamBeginCapture(make_stream(), cudaStreamCaptureModeGlobal);
         (void)on_device();
       }},
      {"UnjoinedCapture", "not joined",
       [] {
         cudaStream_t stream = make_stream();
         cudaStream_t other = make_stream();
         cudaEvent_t event = make_event();
         std::byte* const memory = on_device();
         cudaGraph_t graph = nullptr;
         (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         (void)cudaEventRecord(event, stream);
         (void)cudaStreamWaitEvent(other, event, 0);
         read(memory, 1, other);
         (void)cudaStreamEndCapture(stream, &graph);
       }},
      {"CaptureWaitsForAnOlderEvent", "before the capture",
       [] {
         cudaStream_t stream = make_stream();
         cudaEvent_t event = make_event();
         (void)cudaEventRecord(event, make_stream());
         (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         (void)cudaStreamWaitEvent(stream, event, 0);
       }},
      {"AsksACapturedEvent", "recorded in a capture",
       [] {
         cudaStream_t stream = make_stream();
         cudaEvent_t event = make_event();
         (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         (void)cudaEventRecord(event, stream);
         (void)cudaEventQuery(event);
       }},
      {"CapturedPageableCopy", "pageable",
       [] {
         cudaStream_t stream = make_stream();
         std::byte* const memory = on_device();
         (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         std::byte local{};
         (void)cudaMemcpyAsync(memory, &local, 1, cudaMemcpyDefault, stream);
       }},
      {"TimeOfAnUnrecordedEvent", "not recorded",
       [] {
         float time = 0;
         (void)cudaEventElapsedTime(&time, make_event(), make_event());
       }},
      {"WritesUnordered", "a race: writer writes what writer writes",
       [] {
         std::byte* const memory = on_device();
         write(memory, 10, make_stream());
         write(memory, 10, make_stream());
       },
       "races=on"},
      {"ReadsBeforeTheWrite", "a race: reader reads what writer writes",
       [] {
         std::byte* const memory = on_device();
         read(memory, 10, make_stream());
         write(memory, 10, make_stream());
       },
       "races=on"},
      {"LeavesWhileItIsRead", "a race: reader reads what prefetch far writes",
       [] {
         std::byte* const memory = managed();
         read(memory, 10, make_stream());
         (void)cudaMemPrefetchAsync(memory, kSize, kFar, 0, make_stream());
       },
       "races=on"},
      {"OrderedByAnEvent", "",
       [] {
         std::byte* const memory = on_device();
         cudaStream_t one = make_stream();
         cudaStream_t other = make_stream();
         cudaEvent_t event = make_event();
         write(memory, 10, one);
         (void)cudaEventRecord(event, one);
         (void)cudaStreamWaitEvent(other, event, 0);
         read(memory, 10, other);
       },
       "races=on"},
      {"OrderedByTheHost", "",
       [] {
         std::byte* const memory = on_device();
         cudaStream_t one = make_stream();
         write(memory, 10, one);
         (void)cudaStreamSynchronize(one);
         read(memory, 10, make_stream());
       },
       "races=on"},
      {"OrderedByTheLegacyStream", "",
       [] {
         std::byte* const memory = on_device();
         cudaStream_t blocking = nullptr;
         (void)cudaStreamCreateWithFlags(&blocking, cudaStreamDefault);
         write(memory, 10, blocking);
         write(memory, 10, nullptr);
         write(memory, 10, blocking);
       },
       "races=on,order=late"},
  };
  return all;
}

class CardRules : public ::testing::TestWithParam<CardRule> {};

TEST_P(CardRules, EndsTheProcessForAMistakeOnly) {
  const CardRule& rule = GetParam();
  constexpr int kMistakeStatus = 97;
  const auto run = [&] {
    setenv("SPILLWAY_EMULATED_GPU", rule.settings.c_str(), 1);
    rule.act();
    card().queue.wait_for_all();
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(rule.sentence.empty() ? 0 : kMistakeStatus),
              rule.sentence);
}

INSTANTIATE_TEST_SUITE_P(All, CardRules, ::testing::ValuesIn(rules()),
                         [](const auto& param) { return param.param.name; });

// Runs `act` in a process of its own and expects that it ends well.
template <class Act>
void expect_in_own_process(const std::string& settings, const Act& act) {
  const auto run = [&] {
    setenv("SPILLWAY_EMULATED_GPU", settings.c_str(), 1);
    act();
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST(CardMemory, PagesAreNearWhereHintsAndFaultsBringThem) {
  expect_in_own_process("", [] {
    std::byte* const memory = managed(4 * kManagedPageBytes);
    cudaStream_t stream = make_stream();
    const MemoryCounts& counts = card().memory.counts();
    (void)cudaMemPrefetchAsync(memory, 2 * kManagedPageBytes, kNear, 0, stream);
    EXPECT_EQ(counts.near_bytes, 2 * kManagedPageBytes);
    EXPECT_EQ(counts.prefetched_bytes, 0U);  // new pages move nothing
    write(memory, 3 * kManagedPageBytes, stream);
    EXPECT_EQ(counts.device_faults, 1U);
    (void)cudaMemPrefetchAsync(memory, kManagedPageBytes, kFar, 0, stream);
    EXPECT_EQ(counts.near_bytes, 2 * kManagedPageBytes);
    EXPECT_EQ(counts.offloaded_bytes, kManagedPageBytes);
    (void)cudaMemPrefetchAsync(memory, kManagedPageBytes, kNear, 0, stream);
    EXPECT_EQ(counts.prefetched_bytes, kManagedPageBytes);
    EXPECT_EQ(counts.near_peak, 3 * kManagedPageBytes);
  });
}

TEST(CardMemory, EvictsThePagesThatArrivedFirst) {
  expect_in_own_process("memory-mib=8", [] {
    std::byte* const memory = managed(6 * kManagedPageBytes);
    cudaStream_t stream = make_stream();
    (void)cudaMemPrefetchAsync(memory, 6 * kManagedPageBytes, kNear, 0, stream);
    const MemoryCounts& counts = card().memory.counts();
    EXPECT_EQ(counts.near_bytes, 4 * kManagedPageBytes);
    EXPECT_EQ(counts.evicted_bytes, 2 * kManagedPageBytes);
    read(memory, 1, stream);
    EXPECT_EQ(counts.device_faults, 1U);
  });
}

TEST(CardMemory, RefusesWhatDoesNotFit) {
  expect_in_own_process("memory-mib=8", [] {
    (void)on_device(6U << 20U);
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, 4U << 20U), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  });
}

TEST(CardWork, IsComputedWhenItsOrderSays) {
  for (const auto& [order, moves, computes] :
       {std::tuple{"eager", true, true}, std::tuple{"late", false, false},
        std::tuple{"moves", true, false}, std::tuple{"compute", false, true}}) {
    expect_in_own_process(std::string{"order="} + order, [&, moves = moves, computes = computes] {
      std::byte* const near = on_device();
      std::byte* const far = pinned();
      far[0] = std::byte{1};
      bool is_computed = false;
      (void)cudaMemcpyAsync(near, far, 1, cudaMemcpyDefault, make_stream());
      cudaStream_t stream = make_stream();
      (void)enqueue(stream,
                    {.name = "work", .accesses = {}, .compute = [&] { is_computed = true; }});
      EXPECT_EQ(near[0] == std::byte{1}, moves);
      EXPECT_EQ(is_computed, computes);
      (void)cudaStreamSynchronize(stream);
      EXPECT_TRUE(is_computed);
    });
  }
}

TEST(CardWork, RepeatsAGraphInItsOrder) {
  expect_in_own_process("order=late", [] {
    cudaStream_t stream = make_stream();
    int value = 1;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    (void)enqueue(stream, {.name = "add", .accesses = {}, .compute = [&] { value += 1; }});
    (void)enqueue(stream, {.name = "double", .accesses = {}, .compute = [&] { value *= 2; }});
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    (void)cudaStreamSynchronize(stream);
    EXPECT_EQ(value, ((1 + 1) * 2 + 1) * 2);
  });
}

// Captures two streams. Recording the event that would join the second one fails.
void expect_failed_capture(cudaError_t of_more_work, cudaError_t at_the_end) {
  cudaStream_t stream = make_stream();
  cudaStream_t other = make_stream();
  cudaEvent_t event = make_event();
  int value = 0;
  const Work work{.name = "add", .accesses = {}, .compute = [&] { ++value; }};
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  EXPECT_EQ(enqueue(other, work), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, other), cudaErrorUnknown);
  EXPECT_EQ(enqueue(stream, work), of_more_work);
  auto* graph = reinterpret_cast<cudaGraph_t>(&value);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), at_the_end);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(card().mistakes, 0U);
  for (cudaStream_t each : {stream, other}) {
    EXPECT_EQ(enqueue(each, work), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(each), cudaSuccess);
  }
  EXPECT_EQ(value, 2);
}

TEST(CardCalls, ThatFailMayLeaveACaptureUnjoined) {
  expect_in_own_process("fail=cudaEventRecord:2",
                        [] { expect_failed_capture(cudaSuccess, cudaErrorStreamCaptureUnjoined); });
}

TEST(CardCalls, ThatFailMayInvalidateACapture) {
  expect_in_own_process("fail=cudaEventRecord:2,invalidates=on", [] {
    expect_failed_capture(cudaErrorStreamCaptureInvalidated, cudaErrorStreamCaptureInvalidated);
  });
}

TEST(CardCalls, EndACaptureEvenIfTheyFail) {
  expect_in_own_process("fail=cudaStreamEndCapture:1", [] {
    cudaStream_t stream = make_stream();
    cudaGraph_t graph = nullptr;
    (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorUnknown);
    EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_TRUE(card().graphs.empty());
  });
}

TEST(CardCalls, FailOnceWhereTheTestAsks) {
  expect_in_own_process("fail=cudaMalloc:2", [] {
    void* address = nullptr;
    EXPECT_EQ(cudaMalloc(&address, 1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&address, 1), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&address, 1), cudaSuccess);
  });
}

TEST(CardCalls, AllFailOnceTheDeviceIsLost) {
  expect_in_own_process("fail=cudaMalloc:1,lost=on", [] {
    void* address = nullptr;
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaMalloc(&address, 1), cudaErrorDevicesUnavailable);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaErrorDevicesUnavailable);
    EXPECT_EQ(card().calls_after_loss, 1U);
  });
}

TEST(CardSettings, RefusesWhatItDoesNotKnow) {
  const auto read = [](const char* text) {
    setenv("SPILLWAY_EMULATED_GPU", text, 1);
    (void)read_card_settings();
    std::_Exit(0);
  };
  EXPECT_EXIT(read("colour=red"), ::testing::ExitedWithCode(98), "is unknown; there are");
  EXPECT_EXIT(read("order=reverse"), ::testing::ExitedWithCode(98), "must be one of");
  EXPECT_EXIT(read("devices=two"), ::testing::ExitedWithCode(98), "needs a number");
}

}  // namespace
}  // namespace spillway::emulated
