#include <gtest/gtest.h>

#include <string>

#include "tests/process.h"

namespace spillway::dropin {
namespace {

/// What a program prints where GPUs are the host and say how often one was opened.
std::string output_of(const std::string& program) {
  const test::Ended ended = test::run_in_shell("LD_LIBRARY_PATH=" FAKE_GPU " " + program);
  EXPECT_EQ(ended.status, 0);
  return ended.output;
}

// Each device checks what it allocates against the GPU's memory.
TEST(SpacesOnOneGpu, AreOfOneDevice) {
  EXPECT_EQ(output_of(TWO_SPACES),
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 3: recorded stream 0\n");  // another GPU's
}

}  // namespace
}  // namespace spillway::dropin
