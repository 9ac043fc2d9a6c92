#include <gtest/gtest.h>

#include <string>

#include "tests/process.h"

namespace spillway::dropin {
namespace {

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
