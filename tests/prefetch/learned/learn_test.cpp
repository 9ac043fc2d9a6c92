#include "prefetch/learned/learn.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/learned/recording.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/state_home.h"
#include "prefetch/verify/verify.h"
#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

LearnOptions toy_options(um::Bytes budget) {
  return {.budget = budget, .page = kPage, .link = toy_link(), .together = 5ns};
}

std::variant<ReplayPlan, NotLearned> learn_program(const Program& program,
                                                   const LearnOptions& options) {
  return learn(twice(record(program)), options);
}

// Two blocks of two pages, read alternately for 100 ns, in two pages: each comes in 20 ns and is
// dropped clean, 240 ns in total. By faults: two pages each, 20,010 ns a page; the model's first
// step has no far copies, so two pages are written out, 10 ns each.
TEST(Learn, PlansAnIterationThatDoesNotFit) {
  const auto result =
      learn_program(stream(2, pages(2), um::Access::kRead, 100ns), toy_options(pages(2)));
  const auto& replay_plan = std::get<ReplayPlan>(result);
  EXPECT_EQ(replay_plan.computing, 200ns);
  EXPECT_EQ(replay_plan.planned, 240ns);
  EXPECT_EQ(replay_plan.on_demand, 200ns + 4 * 20'010ns + 2 * 10ns);
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(replay_plan.step.graph, replay_plan.plan)));
}

TEST(Learn, LeavesWhatFitsToFaults) {
  const auto result =
      learn_program(stream(2, pages(2), um::Access::kRead, 100ns), toy_options(pages(4)));
  EXPECT_EQ(std::get<NotLearned>(result).reason, "page faults alone are as fast as the best plan");
}

TEST(Learn, SaysWhatBudgetWouldDo) {
  const auto result =
      learn_program(stream(2, pages(2), um::Access::kRead, 100ns), toy_options(pages(1)));
  EXPECT_NE(std::get<NotLearned>(result).reason.find("8.00 KiB"), std::string::npos)
      << std::get<NotLearned>(result).reason;
}

struct Stream {
  std::uint64_t oversubscription;
  um::Access access;
};

// GoogleTest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Stream& stream, std::ostream* out) {
  *out << stream.oversubscription << " times near memory, "
       << (stream.access == um::Access::kRead ? "read" : "read and written");
}

class LearnedStream : public ::testing::TestWithParam<Stream> {};

// 64 blocks of 4 MiB, each used once per iteration for 0.5 ms. The link takes 0.36 ms for a block
// each way, so all transfers except the first can be hidden.
TEST_P(LearnedStream, IsFasterThanFaults) {
  const Stream& given = GetParam();
  const LinkProfile link{.offload = um::Bandwidth{12e9},
                         .prefetch = um::Bandwidth{12e9},
                         .latency = um::Nanoseconds{10'000}};
  const um::Bytes total = 256_MiB;
  const auto result = learn_program(
      stream(64, 4_MiB, given.access, um::Nanoseconds{500'000}),
      {.budget = um::Bytes{total.count() / given.oversubscription}, .page = 2_MiB, .link = link});
  const auto& replay_plan = std::get<ReplayPlan>(result);
  const double computing = um::seconds(replay_plan.computing);
  const StateHome home{replay_plan.step.graph, BlockSizes{replay_plan.step.graph, 2_MiB},
                       replay_plan.plan};
  std::printf(
      "stream of %d times the budget%s: planned %.3f, on demand %.3f of computing; %s far "
      "between iterations, the last run ends at %.3f\n",
      static_cast<int>(given.oversubscription),
      given.access == um::Access::kRead ? ", read" : ", updated",
      um::seconds(replay_plan.planned) / computing, um::seconds(replay_plan.on_demand) / computing,
      to_string(home.far()).c_str(),
      um::seconds(simulate(replay_plan.plan, replay_plan.step.profile).runs.back().end) /
          computing);
  EXPECT_LE(um::seconds(replay_plan.planned), 1.02 * computing);
  EXPECT_LT(replay_plan.planned, replay_plan.on_demand);
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(replay_plan.step.graph, replay_plan.plan)));
}

INSTANTIATE_TEST_SUITE_P(Streams, LearnedStream,
                         ::testing::Values(Stream{2, um::Access::kRead},
                                           Stream{4, um::Access::kRead},
                                           Stream{2, um::Access::kReadWrite},
                                           Stream{4, um::Access::kReadWrite}));

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

// Iteration `number` uses a block that was allocated `age` iterations earlier.
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

// Block 0 of the previous iteration is still used when the next block 0 may exist.
TEST(FindCycle, IsLongerThanBlocksLive) {
  std::vector<Recording> carried;
  for (std::uint64_t i = 5; i < 9; ++i) carried.push_back(use_of_age(i, 1));
  EXPECT_EQ(find_cycle(carried, 4)->cycle, 2U);
  EXPECT_FALSE(find_cycle(carried, 1));
}

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
  // From the first touch of a group to the first touch of the next.
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
  EXPECT_EQ(block(3).kind, DataKind::kState);  // freed one task after its last use
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

// Each iteration uses and frees a block of the previous one. It has content when the cycle begins,
// also if it is read first without a declared write.
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
