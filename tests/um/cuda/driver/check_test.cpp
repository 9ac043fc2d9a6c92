#include "um/cuda/driver/check.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

namespace spillway::um {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Check, LetsSuccessPass) { EXPECT_NO_THROW(check(cudaSuccess)); }

TEST(Check, NamesTheCallersLineAndTheErrorsText) {
  const int line = __LINE__ + 2;
  try {
    check(cudaErrorMemoryAllocation);
    FAIL() << "check() let a failure pass";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_TRUE(contains(error.what(), "check_test.cpp:" + std::to_string(line) + ")"))
        << error.what();
    EXPECT_TRUE(contains(error.what(), "cudaErrorMemoryAllocation")) << error.what();
    EXPECT_TRUE(contains(error.what(), cudaGetErrorString(cudaErrorMemoryAllocation)))
        << error.what();
  }
}

}  // namespace
}  // namespace spillway::um
