#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace spillway::dropin {
namespace {

/// Returns the output of a program with the host as its GPUs, which print each opening.
std::string output_of(const std::string& program) {
  FILE* const pipe = popen(("LD_LIBRARY_PATH=" FAKE_GPU " " + program).c_str(), "re");
  std::array<char, 256> line{};
  std::string all;
  while (fgets(line.data(), line.size(), pipe) != nullptr) all += line.data();
  EXPECT_EQ(pclose(pipe), 0);
  return all;
}

// Spaces must share a device, because each device checks its allocations against the GPU's memory.
TEST(SpacesOnOneGpu, AreOfOneDevice) {
  EXPECT_EQ(output_of(TWO_SPACES),
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 1: recorded stream 0\n"
            "gpu of opening 3: recorded stream 0\n");  // the other GPU
}

}  // namespace
}  // namespace spillway::dropin
