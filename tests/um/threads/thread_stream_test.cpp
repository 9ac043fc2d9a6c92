#include "um/threads/thread_stream.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/um/stream_contract.h"

namespace spillway::um {
namespace {

const StreamMaker kMaker{.kind = "Thread", .make = [](const std::string& name) {
                           return std::make_unique<ThreadStream>(name);
                         }};

INSTANTIATE_TEST_SUITE_P(Host, StreamContract, testing::Values(kMaker), kind_of);

TEST(ThreadStream, ReadsWhatItsWorkHasWritten) {
  std::array<std::byte, 2> near{};
  std::array<std::byte, 2> read{};
  ThreadStream stream{"test"};
  stream.enqueue([&] {
    near = {std::byte{5}, std::byte{7}};
    stream.read(near, read);
  });
  stream.synchronize();
  EXPECT_EQ(read, near);
}

}  // namespace
}  // namespace spillway::um
