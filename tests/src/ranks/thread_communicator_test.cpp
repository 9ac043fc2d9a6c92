#include "src/ranks/thread_communicator.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/src/ranks/communicator_contract.h"
#include "tests/src/ranks/on_ranks.h"
#include "um/error.h"

namespace spillway {
namespace {

using namespace std::chrono_literals;
using namespace testing;

TEST(SelfCommunicator, KeepsWhatACommunicatorPromises) {
  EXPECT_EQ(self_communicator().size(), 1U);
  for (const Promise& promise : communicator_contract()) {
    EXPECT_NO_THROW(promise.check(self_communicator())) << promise.name;
  }
}

TEST(ThreadRanks, KeepWhatACommunicatorPromises) {
  for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
    ThreadRanks group{ranks};
    for (const Promise& promise : communicator_contract()) {
      EXPECT_EQ(on_ranks(group, promise.check), no_errors(group)) << promise.name;
    }
  }
}

TEST(ThreadRanks, StandOnTheNodesThatTheyAreGiven) {
  ThreadRanks group{{"a", "b", "a"}};
  const auto places = [&](std::size_t rank) {
    const auto end = group.end(rank);
    return end->node() + std::to_string(end->rank_on_node()) + std::to_string(end->ranks_on_node());
  };
  EXPECT_EQ(places(0), "a02");
  EXPECT_EQ(places(1), "b01");
  EXPECT_EQ(places(2), "a12");
}

void sum_three(Communicator& communicator) {
  std::array<float, 3> numbers{};
  communicator.sum(numbers);
}

void broadcast_little(Communicator& communicator) {
  std::array<std::byte, 3> bytes{};
  communicator.broadcast(bytes, 0);
}

void broadcast_much(Communicator& communicator) {
  std::vector<std::byte> bytes(100'000);
  communicator.broadcast(bytes, 2);
}

// Rank 1 never arrives: all others report it, and rank 1 gets the same error if it comes later.
TEST(ThreadRanks, NameTheOneThatIsSilent) {
  for (const auto call : {wait_for_all, sum_three, broadcast_little, broadcast_much}) {
    ThreadRanks group{{"a", "b", "b"}, {.time_limit = 50ms}};
    const auto errors = on_ranks(group, [&](Communicator& communicator) {
      if (communicator.rank() != 1) call(communicator);
    });
    for (const std::size_t rank : {0, 2}) {
      EXPECT_EQ(errors[rank],
                "nothing has come from rank 1 on b for 0.05 s: it hangs, has ended, or cannot be "
                "reached");
    }
    EXPECT_THROW(call(*group.end(1)), um::Error);
  }
}

TEST(ThreadRanks, EndTogetherWhereOneGivesUp) {
  ThreadRanks group{{"a", "b", "b"}};
  const auto errors = on_ranks(group, [](Communicator& communicator) {
    if (communicator.rank() == 1) communicator.abort("the disk is full");
    wait_for_all(communicator);
  });
  EXPECT_EQ(errors,
            (std::vector<std::string>{"rank 1 on b ended: the disk is full", "the disk is full",
                                      "rank 1 on b ended: the disk is full"}));
}

TEST(ThreadRanks, DoNotCutWhatIsLongerThanItsReceiverExpects) {
  ThreadRanks group{2, {.time_limit = 50ms}};
  const auto errors = on_ranks(group, [](Communicator& communicator) {
    std::vector<std::byte> bytes(communicator.rank() == 0 ? 5 : 4);
    communicator.broadcast(bytes, 0);
  });
  EXPECT_NE(errors[1].find("a message of the size that its receiver expects"), std::string::npos);
}

}  // namespace
}  // namespace spillway
