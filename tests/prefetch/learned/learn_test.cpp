#include "prefetch/learned/learn.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "prefetch/block_sizes.h"
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

// Two blocks of two pages, read in turn for 100 ns, in two pages: each comes in 20 ns and is
// dropped clean, 240 ns in all. By faults: two pages each, 20,010 ns a
// page; the model's first step has no far copies, so two pages are written out, 10 ns each.
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

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Stream& stream, std::ostream* out) {
  *out << stream.oversubscription << " times near memory, "
       << (stream.access == um::Access::kRead ? "read" : "read and written");
}

class LearnedStream : public ::testing::TestWithParam<Stream> {};

// 64 blocks of 4 MiB, each used once an iteration for 0.5 ms. The link takes 0.36 ms for a block
// each way, so all but the first transfer can be hidden.
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

}  // namespace
}  // namespace spillway::prefetch
