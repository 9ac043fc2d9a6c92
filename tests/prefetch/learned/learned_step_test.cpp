#include "prefetch/learned/learned_step.h"

#include <gtest/gtest.h>

#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using Kind = RecordedEvent::Kind;

// Persistent blocks 0 and 1 (2 pages and 100 bytes), fresh ones 2 and 3 (1 page each):
//   allocate 2; touch 0 (read) and, at once, 2 (write); 300 ns; touch 2 (read); 100 ns; free 2;
//   allocate 3; touch 3 (read-write), 50 ns; touch 1 (write), 40 ns; free 3.
Program toy() {
  return {.persistent = 2,
          .sizes = {pages(2), um::Bytes{100}, pages(1), pages(1)},
          .actions = {{.kind = Kind::kAllocate, .block = 2, .gap = 7ns},
                      {.block = 0, .access = um::Access::kRead, .gap = 1ns},
                      {.block = 2, .access = um::Access::kWrite, .gap = 300ns},
                      {.block = 2, .access = um::Access::kRead, .gap = 100ns},
                      {.kind = Kind::kFree, .block = 2, .gap = 3ns},
                      {.kind = Kind::kAllocate, .block = 3, .gap = 0ns},
                      {.block = 3, .gap = 50ns},
                      {.block = 1, .access = um::Access::kWrite, .gap = 40ns},
                      {.kind = Kind::kFree, .block = 3, .gap = 0ns}}};
}

LearnedStep step_of(const Program& program, um::Bytes max = pages(100)) {
  return std::get<LearnedStep>(
      learn_step(twice(record(program)), toy_link(), kPage, {.together = 5ns, .max = max}));
}

std::string refusal(const Program& program) {
  const auto made =
      learn_step(twice(record(program)), toy_link(), kPage, {.together = 5ns, .max = pages(100)});
  const auto* refused = std::get_if<NotLearned>(&made);
  return refused != nullptr ? refused->reason : "";
}

TEST(LearnedStep, GroupsTouchesThatFollowAtOnce) {
  const LearnedStep step = step_of(toy());
  ASSERT_EQ(step.graph.tasks.size(), 4U);
  EXPECT_EQ(step.touches[1].task, 0U);
  EXPECT_EQ(step.touches[2].task, 1U);
  // From the first touch of a group to the first of the next.
  EXPECT_EQ(step.profile.durations[0][0], 301ns);
  EXPECT_EQ(step.profile.durations[1][0], 103ns);
  EXPECT_EQ(step.profile.durations[3][0], 40ns);
}

TEST(LearnedStep, GroupsNoMoreThanFits) {
  EXPECT_EQ(step_of(toy(), pages(3)).graph.tasks.size(), 4U);
  EXPECT_EQ(step_of(toy(), pages(2)).graph.tasks.size(), 5U);  // 0 and 2 take three pages
}

TEST(LearnedStep, MakesTensorsOfWhatDiesWithItsLastTask) {
  const Program program = toy();
  const LearnedStep step = step_of(program);
  const auto block = [&](std::size_t i) { return step.graph[step.blocks.at(program.name(i))]; };
  EXPECT_EQ(block(0).kind, DataKind::kState);
  EXPECT_TRUE(block(0).is_offloadable);
  EXPECT_EQ(block(1).kind, DataKind::kState);  // smaller than a page
  EXPECT_FALSE(block(1).is_offloadable);
  EXPECT_EQ(block(2).kind, DataKind::kTensor);
  EXPECT_EQ(block(3).kind, DataKind::kState);  // freed a task after its last
  EXPECT_TRUE(block(3).is_offloadable);
}

TEST(LearnedStep, TakesWritesForUpdatesExceptATensorsFirst) {
  const Program program = toy();
  const LearnedStep step = step_of(program);
  const auto id = [&](std::size_t i) { return step.blocks.at(program.name(i)); };
  EXPECT_EQ(step.graph.tasks[0].reads, std::vector{id(0)});
  EXPECT_EQ(step.graph.tasks[0].writes, std::vector{id(2)});
  EXPECT_EQ(step.graph.tasks[1].reads, std::vector{id(2)});
  EXPECT_TRUE(step.graph.tasks[1].writes.empty());
  EXPECT_EQ(step.graph.tasks[3].reads, std::vector{id(1)});
  EXPECT_EQ(step.graph.tasks[3].writes, std::vector{id(1)});
}

TEST(LearnedStep, TakesTheMedianOfTheGaps) {
  RecordedCycles recorded;
  for (const auto gap : {900ns, 100ns, 200ns}) {
    recorded.iterations.push_back(record(stream(1, pages(1), um::Access::kRead, gap)));
  }
  const auto made = learn_step(recorded, toy_link(), kPage, {.max = pages(1)});
  EXPECT_EQ(std::get<LearnedStep>(made).profile.durations[0][0], 200ns);
}

// Each iteration uses and frees what the one before allocated: where the cycle begins it has
// content, and where it is read first, too, even if no touch told of a write.
TEST(LearnedStep, KeepsWhatIsCarriedOver) {
  const auto iteration = [](std::uint64_t number, um::Access access) {
    Recording recording{10, number};
    const BlockName old{.is_fresh = true, .id = 0, .born = number - 1};
    recording.touch({.block = old, .size = pages(1), .access = access});
    recording.free(old);
    recording.allocate({.is_fresh = true, .id = 0, .born = number}, pages(1));
    recording.end(100ns);
    return recording;
  };
  const auto made = learn_step(
      {.iterations = {iteration(5, um::Access::kReadWrite), iteration(6, um::Access::kRead)},
       .cycle = 2},
      toy_link(), kPage, {.max = pages(100)});
  const auto& step = std::get<LearnedStep>(made);
  EXPECT_EQ(step.first, 1U);
  EXPECT_EQ(step.ends, (std::vector<std::size_t>{1, 2}));
  ASSERT_EQ(step.graph.data.size(), 2U);
  EXPECT_EQ(step.graph.data[0].kind, DataKind::kState);
  EXPECT_EQ(step.graph.data[1].kind, DataKind::kState);
  EXPECT_EQ(step.graph.tasks[0].reads, std::vector{step.blocks.at({true, 0, 0})});
  EXPECT_EQ(step.graph.tasks[1].reads, std::vector{step.blocks.at({true, 0, 1})});
}

TEST(LearnedStep, RefusesBlocksThatAreLeftBehind) {
  Program program = toy();
  program.actions.pop_back();
  EXPECT_EQ(refusal(program), "the iteration leaves behind a block that it allocated, for ever");
  program = toy();
  program.actions.push_back({.kind = Kind::kFree, .block = 0});
  EXPECT_EQ(refusal(program), "the iteration frees a block that none like it has allocated");
  EXPECT_EQ(refusal({}), "the iteration touches no block");
}

}  // namespace
}  // namespace spillway::prefetch
