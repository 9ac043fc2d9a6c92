#include "prefetch/learned/recording.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Program three_reads() { return stream(3, pages(1), um::Access::kRead, 100ns); }

TEST(Recording, KeepsNothingOnceItIsTooLong) {
  EXPECT_FALSE(record(three_reads(), 3).is_too_long());
  const Recording recording = record(three_reads(), 2);
  EXPECT_TRUE(recording.is_too_long());
  EXPECT_TRUE(recording.events().empty());
  EXPECT_FALSE(agree(recording, recording));
}

TEST(Recording, AgreesWhateverTheTimes) {
  EXPECT_TRUE(agree(record(three_reads()), record(stream(3, pages(1), um::Access::kRead, 700ns))));
}

TEST(Recording, DisagreesOnBlockSizeAccessAndKind) {
  const auto agrees_after = [](const auto& change) {
    Program other = three_reads();
    change(other);
    return agree(record(three_reads()), record(other));
  };
  EXPECT_FALSE(agrees_after([](Program& other) { other.actions[1].block = 2; }));
  EXPECT_FALSE(agrees_after([](Program& other) { other.sizes[1] = pages(2); }));
  EXPECT_FALSE(agrees_after([](Program& other) { other.actions[1].access = um::Access::kWrite; }));
  EXPECT_FALSE(
      agrees_after([](Program& other) { other.actions[1].kind = RecordedEvent::Kind::kFree; }));
  EXPECT_FALSE(agrees_after([](Program& other) { other.actions.pop_back(); }));
}

// Iteration `number` uses a block that was allocated `age` iterations before.
Recording use_of_age(std::uint64_t number, std::uint64_t age) {
  Recording recording{10, number};
  recording.touch({.block = {.is_fresh = true, .id = 0, .born = number - age}, .size = pages(1)});
  return recording;
}

TEST(Recording, AgreesOnBlocksOfTheSameAge) {
  EXPECT_TRUE(agree(use_of_age(8, 1), use_of_age(9, 1)));
  EXPECT_TRUE(agree(use_of_age(9, 1), use_of_age(8, 1)));
  EXPECT_FALSE(agree(use_of_age(8, 0), use_of_age(9, 1)));
}

TEST(FindCycle, TakesTheShortestThatWasGoneThroughTwice) {
  const auto a = [](std::uint64_t number) { return use_of_age(number, 0); };
  const std::vector<Recording> swapped{a(1), Recording{10, 2}, a(3), Recording{10, 4}};
  const auto found = find_cycle(swapped, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cycle, 2U);
  EXPECT_EQ(found->iterations.size(), 4U);
  EXPECT_FALSE(find_cycle(swapped, 1));
  EXPECT_FALSE(find_cycle(std::span{swapped}.first(3), 4));
  const std::vector<Recording> same{a(1), a(2), a(3), a(4)};
  EXPECT_EQ(find_cycle(same, 4)->cycle, 1U);
}

// Block 0 of the iteration before is still used when the next block 0 may be there.
TEST(FindCycle, IsLongerThanBlocksLive) {
  std::vector<Recording> carried;
  for (std::uint64_t i = 5; i < 9; ++i) carried.push_back(use_of_age(i, 1));
  EXPECT_EQ(find_cycle(carried, 4)->cycle, 2U);
  EXPECT_FALSE(find_cycle(carried, 1));
}

}  // namespace
}  // namespace spillway::prefetch
