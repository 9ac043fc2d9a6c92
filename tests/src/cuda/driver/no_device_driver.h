#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace spillway::cuda {

/// Tests with a driver without a device, so that cuDNN lists and compiles its run-time engines.
/// After the first such test, the process cannot use another driver.
class NoDeviceDriver : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Its name is libcuda.so.1, so later calls of dlopen() return this library.
    ASSERT_NE(dlopen(SPILLWAY_NO_DEVICE_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  }
};

/// Returns the JSON that describes the device: "a100", "h100", "h200".
[[nodiscard]] inline std::string described_device(const std::string& device) {
  std::ifstream file{std::string{SPILLWAY_GOLDEN_FILES} + "/" + device + "_device_properties.json"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace spillway::cuda
