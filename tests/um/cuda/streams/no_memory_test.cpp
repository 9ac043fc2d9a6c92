#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "tests/um/cuda/recording_api.h"
#include "tests/um/out_of_memory.h"
#include "um/cuda/streams/compute_streams.h"
#include "um/cuda/streams/cuda_stream.h"

namespace spillway::um {
namespace {

// As ThreadStream's: it waits, whether it can tell so or not.
TEST(CudaStream, WaitsWithoutMemory) {
  RecordingApi api;
  ComputeStreams compute{api};
  CudaStream stream{api, compute, "test"};
  std::atomic<int> done{0};
  int refused = 0;
  for (int i = 1; i <= 40; ++i) {
    stream.enqueue([&] { ++done; });
    try {
      const OutOfMemoryHere none;
      stream.synchronize();
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    EXPECT_EQ(done, i);
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace spillway::um
