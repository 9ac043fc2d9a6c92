#include <gtest/gtest.h>

#include <string>

#include "tests/process.h"

namespace spillway::dropin {
namespace {

const std::string kOnHost =
    "SPILLWAY_UM_DEVICE=host SPILLWAY_UM_NEAR=2MiB SPILLWAY_UM_CAPACITY=8MiB ";
const std::string kOnGpu1 = "LD_LIBRARY_PATH=" FAKE_GPU
                            " SPILLWAY_UM_DEVICE=cuda:1 SPILLWAY_UM_NEAR=2MiB "
                            "SPILLWAY_UM_CAPACITY=8MiB ";
constexpr const char* kNothing = "";

/// Runs a program with the preloaded library.
test::Ended run_preloaded(const std::string& environment, const std::string& command) {
  return test::run_in_shell("env LD_PRELOAD=" PRELOAD " " + environment + command);
}

/// Returns the output of a program linked with a shared runtime.
std::string output_of(const std::string& environment, const std::string& calls) {
  const test::Ended outcome = run_preloaded(environment, LINKED " " + calls);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.errors, "");
  return outcome.output;
}

TEST(Preload, ServesLargeAllocationsAndLeavesSmallOnesToTheRuntime) {
  EXPECT_EQ(output_of(kOnHost, "malloc:1048575 malloc:1048576 free free"),
            "runtime: cudaMalloc 1048575\nmalloc:1048575 -> 0\n"
            "malloc:1048576 -> 0\n"
            "runtime: cudaFree\nfree -> 0\n"
            "free -> 0\n");
}

TEST(Preload, ServesFromAsManyBytesAsTheEnvironmentSays) {
  EXPECT_EQ(output_of(kOnHost + "SPILLWAY_UM_PRELOAD_LEAST=1KiB ", "malloc:1024 malloc:1023"),
            "malloc:1024 -> 0\n"
            "runtime: cudaMalloc 1023\nmalloc:1023 -> 0\n");
}

TEST(Preload, ServesAllocationsInTheOrderOfStreams) {
  EXPECT_EQ(output_of(kOnHost,
                      "async:2000000:7 ptsz:2000000:0 free_async:7 free_ptsz:0 "
                      "async:4096:7 ptsz:4096:0 free_async:7 free_ptsz:0"),
            "async:2000000:7 -> 0\nptsz:2000000:0 -> 0\nfree_async:7 -> 0\nfree_ptsz:0 -> 0\n"
            "runtime: cudaMallocAsync 4096\nasync:4096:7 -> 0\n"
            "runtime: cudaMallocAsync_ptsz 4096\nptsz:4096:0 -> 0\n"
            "runtime: cudaFreeAsync\nfree_async:7 -> 0\n"
            "runtime: cudaFreeAsync_ptsz\nfree_ptsz:0 -> 0\n");
}

TEST(Preload, LeavesWhatHasNoRoomToTheRuntime) {  // 8 MiB: two blocks of 3 MiB
  EXPECT_EQ(output_of(kOnHost, "malloc:3145728 malloc:3145728 malloc:3145728 free malloc:3145728"),
            "malloc:3145728 -> 0\nmalloc:3145728 -> 0\n"
            "runtime: cudaMalloc 3145728\nmalloc:3145728 -> 0\n"
            "free -> 0\nmalloc:3145728 -> 0\n");
  EXPECT_EQ(output_of(kOnHost, "malloc:18446744073709551615"),
            "runtime: cudaMalloc 18446744073709551615\nmalloc:18446744073709551615 -> 2\n");
}

TEST(Preload, RefusesToFreeTwiceWithoutAskingTheRuntime) {
  EXPECT_EQ(output_of(kOnHost, "malloc:4194304 malloc:1048576 inside free again null"),
            "malloc:4194304 -> 0\nmalloc:1048576 -> 0\n"
            "inside -> 1\nfree -> 0\nagain -> 1\n"
            "runtime: cudaFree\nnull -> 0\n");
}

TEST(Preload, ServesDestructorsAtExit) {
  EXPECT_EQ(output_of(kOnHost, "malloc:4194304 leave"),
            "malloc:4194304 -> 0\nleave -> 0\nat exit -> 0\n");
}

TEST(Preload, ServesThreads) {  // at most eight blocks of 1 MiB are 8 MiB
  const test::Ended outcome =
      run_preloaded(kOnHost + "SPILLWAY_UM_PRELOAD_REPORT=1 ", LINKED " threads");
  EXPECT_EQ(outcome.output, "threads -> 0\n");
  EXPECT_NE(outcome.errors.find(": allocations: 400 served (400 MiB), "), std::string::npos)
      << outcome.errors;
}

TEST(Preload, ServesModulesThatWereOpenedWithTheirOwnRuntime) {
  const test::Ended outcome =
      run_preloaded(kOnHost, OPENING " malloc:4096 malloc:4194304 free free");
  EXPECT_EQ(outcome.output,
            "runtime: cudaMalloc 4096\nmalloc:4096 -> 0\nmalloc:4194304 -> 0\n"
            "runtime: cudaFree\nfree -> 0\nfree -> 0\n");
  EXPECT_EQ(outcome.errors, "");
}

#ifdef OF_CUDA
TEST(Preload, StandsInFrontOfTheRuntimeOfCuda) {
  const test::Ended outcome =
      run_preloaded(kOnHost, OF_CUDA " malloc:4194304 async:2000000:0 free free_async:0");
  EXPECT_EQ(outcome.output,
            "malloc:4194304 -> 0\nasync:2000000:0 -> 0\nfree -> 0\nfree_async:0 -> 0\n");
  EXPECT_EQ(outcome.errors, "");
}
#endif

TEST(Preload, ReportsInOneLine) {
  // 2 MiB of 6 may be near; the rest leaves when written, in pages of 128 KiB.
  const test::Ended outcome =
      run_preloaded(kOnHost + "SPILLWAY_UM_PRELOAD_REPORT=1 ",
                    LINKED " malloc:6291456 malloc:6291456 malloc:4096 free free free");
  EXPECT_NE(outcome.errors.find(
                ": allocations: 1 served (6.00 MiB), 1 small, 1 refused, 0 on other devices "
                "or captured; frees: 1 served, 2 of the CUDA runtime's; moved: 0 B near, 4.00 MiB "
                "far\n"),
            std::string::npos)
      << outcome.errors;
}

// --- a GPU: the host device behind the plug-in's interface

TEST(PreloadOnAGpu, ServesItsOwnDeviceAlone) {
  EXPECT_EQ(output_of(kOnGpu1, "malloc:1048576 device:1 malloc:1048576 free"),
            "runtime: cudaMalloc 1048576\nmalloc:1048576 -> 0\ndevice:1 -> 0\n"
            "gpu of opening 1: stream 0 waits for near memory\nmalloc:1048576 -> 0\n"
            "runtime: cudaFree\nfree -> 0\n");
}

TEST(PreloadOnAGpu, WaitsForItBeforeItFrees) {
  EXPECT_EQ(output_of(kOnGpu1, "device:1 malloc:1048576 device:0 free malloc:4096"),
            "device:1 -> 0\n"
            "gpu of opening 1: stream 0 waits for near memory\nmalloc:1048576 -> 0\ndevice:0 -> 0\n"
            "runtime: synchronized device 1\nfree -> 0\n"
            "runtime: cudaMalloc 4096\nmalloc:4096 -> 0\n");
}

TEST(PreloadOnAGpu, ServesInTheOrderOfTheStreamThatIsMeant) {  // a per-thread stream has number 2
  EXPECT_EQ(output_of(kOnGpu1,
                      "device:1 async:1048576:7 ptsz:1048576:0 ptsz:1048576:0 free_async:7 "
                      "free_ptsz:9 free_ptsz:0"),
            "device:1 -> 0\n"
            "gpu of opening 1: stream 7 waits for near memory\nasync:1048576:7 -> 0\n"
            "gpu of opening 1: stream 2 waits for near memory\nptsz:1048576:0 -> 0\n"
            "gpu of opening 1: stream 2 waits for near memory\nptsz:1048576:0 -> 0\n"
            "gpu of opening 1: recorded stream 7\nfree_async:7 -> 0\n"
            "gpu of opening 1: recorded stream 9\nfree_ptsz:9 -> 0\n"
            "gpu of opening 1: recorded stream 2\nfree_ptsz:0 -> 0\n");
}

TEST(PreloadOnAGpu, LeavesWhatIsCapturedToTheRuntime) {  // stream 12 is captured
  EXPECT_EQ(
      output_of(kOnGpu1, "device:1 async:1048576:12 async:1048576:7 free_async:12 free_async:12"),
      "device:1 -> 0\nruntime: cudaMallocAsync 1048576\nasync:1048576:12 -> 0\n"
      "gpu of opening 1: stream 7 waits for near memory\nasync:1048576:7 -> 0\n"
      "runtime: cudaFreeAsync\nfree_async:12 -> 0\n"
      "free_async:12 -> 1\n");
}

// --- messages

/// Expects that the runtime served all calls, and that one line on standard error says why.
void expect_all_left(const std::string& environment, const std::string& why) {
  const test::Ended outcome =
      run_preloaded(environment, LINKED " malloc:4194304 free malloc:4194304");
  EXPECT_EQ(outcome.output,
            "runtime: cudaMalloc 4194304\nmalloc:4194304 -> 0\nruntime: cudaFree\nfree -> 0\n"
            "runtime: cudaMalloc 4194304\nmalloc:4194304 -> 0\n");
  EXPECT_EQ(
      outcome.errors,
      "spillway_um_preload: preload_linked_program: the CUDA runtime serves all: " + why + "\n");
}

TEST(Preload, LeavesAllToTheRuntimeWhenTheEnvironmentMakesNoSense) {
  expect_all_left(kOnHost + "SPILLWAY_UM_PRELOAD_LEAST=much ",
                  "SPILLWAY_UM_PRELOAD_LEAST is no size; write 1MiB, say");
  expect_all_left("SPILLWAY_UM_DEVICE=host SPILLWAY_UM_NEAR=some ",
                  "SPILLWAY_UM_NEAR=some is no size; write 2GiB, say");
  expect_all_left("SPILLWAY_UM_NEAR=2MiB SPILLWAY_UM_CAPACITY=8MiB SPILLWAY_UM_DEVICE=gpu ",
                  R"(there is no device "gpu"; use "host", "cuda" or "cuda:N")");
}

TEST(Preload, SaysNothingWhenItIsToBeQuiet) {
  const std::string quiet = "SPILLWAY_UM_PRELOAD_QUIET=1 ";
  EXPECT_EQ(output_of(quiet, "malloc:4194304"),
            "runtime: cudaMalloc 4194304\nmalloc:4194304 -> 0\n");
  EXPECT_EQ(run_preloaded(quiet, STATIC).errors, kNothing);
}

/// Expects that `program` succeeds and warns that it is not served.
void expect_warning(const std::string& program, const std::string& name) {
  const test::Ended outcome = run_preloaded(kNothing, program);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.errors, "spillway_um_preload: " + name +
                                ": its CUDA runtime is linked into it, so its allocations are not "
                                "seen here; link it with nvcc -cudart shared\n");
}

TEST(Preload, WarnsOnceOfARuntimeThatIsLinkedIn) {
  expect_warning(STATIC, "preload_static_program");
  expect_warning(DRIVER, "preload_driver_program");
  EXPECT_EQ(run_preloaded(kNothing, "true").errors, kNothing);  // not a CUDA program
}

/// Returns the output of a program with the host as its GPUs, which print each opening.
std::string output_of(const std::string& program) {
  const test::Ended ended = test::run_in_shell("LD_LIBRARY_PATH=" FAKE_GPU " " + program);
  EXPECT_EQ(ended.status, 0);
  return ended.output;
}

// Spaces must share a device, because each device checks its allocations against the GPU's memory.
TEST(SpacesOnOneGpu, AreOfOneDevice) {
  EXPECT_EQ(output_of(TWO_SPACES),
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 3: recorded stream 0\n");  // the other GPU
}

// Kernels find the memory near that PyTorch, CuPy and the functions for streams allocate.
TEST(StreamOrderedAllocations, AreNearBeforeLaterWorkOfTheirStream) {
  EXPECT_EQ(output_of(TWO_SPACES " pools"),
            "gpu of opening 1: stream 7 waits for near memory\n"
            "gpu of opening 1: recorded stream 7\n"
            "gpu of opening 1: stream 0 waits for near memory\n"
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 1: stream 8 waits for near memory\n"
            "gpu of opening 1: recorded stream 8\n");
}

}  // namespace
}  // namespace spillway::dropin
