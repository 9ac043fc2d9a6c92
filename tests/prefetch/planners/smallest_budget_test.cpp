#include "prefetch/planners/smallest_budget.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// The budgets that a search asked about, in pages beyond three pinned ones, and its result.
struct Asked {
  std::vector<std::uint64_t> pools;
  std::optional<um::Bytes> found;
};

Asked search(std::uint64_t refused, std::uint64_t claimed, std::uint64_t smallest) {
  Asked asked;
  asked.found = find_smallest(
      {.always = pages(3), .page = kPage, .refused = pages(refused), .claimed = pages(claimed)},
      [&](um::Bytes budget) {
        asked.pools.push_back((budget - pages(3)) / kPage);
        return asked.pools.back() >= smallest;
      });
  return asked;
}

TEST(FindSmallest, AsksTwiceWhereTheClaimIsRight) {
  const Asked asked = search(0, 13, 10);
  EXPECT_EQ(asked.found, pages(13));
  EXPECT_EQ(asked.pools, (std::vector<std::uint64_t>{10, 9}));
}

TEST(FindSmallest, FindsWhatIsAboveAndBelowTheClaim) {
  EXPECT_EQ(search(0, 13, 1000).found, pages(1003));
  EXPECT_EQ(search(0, 1003, 7).found, pages(10));
  EXPECT_EQ(search(0, 1003, 0).found, pages(3)) << "an empty pool";
}

TEST(FindSmallest, NamesNothingBelowTheRefusedBudget) {
  EXPECT_EQ(search(20, 13, 0).found, pages(21)) << "smaller ones work, this one was refused";
}

TEST(FindSmallest, FindsNothingWhereNothingWorks) {
  EXPECT_EQ(find_smallest({.always = pages(3), .page = kPage, .refused = {}, .claimed = pages(9)},
                          [](um::Bytes) { return false; }),
            std::nullopt);
}

// If a planner refuses, the named budget works, and one page less does not.
void expect_true_names(const TaskGraph& graph, bool whole_blocks) {
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  given.whole_blocks = whole_blocks;
  for (const auto& planner : planners()) {
    const auto planned = planner->plan(given);
    const auto* const refusal = std::get_if<Infeasible>(&planned);
    if (refusal == nullptr) continue;
    const um::Bytes named = smallest_budget(*planner, given, *refusal).smallest_budget;
    const std::string name{planner->name()};
    if (named <= given.budget) RC_FAIL(name + " names no more than it refused");
    if (!has_plan(*planner, given, named)) RC_FAIL(name + " refuses what it names");
    if (has_plan(*planner, given, named - kPage)) RC_FAIL(name + " names a page too much");
  }
}

RC_GTEST_PROP(SmallestBudget, OfADagWorksAndOnePageLessDoesNot, ()) {
  expect_true_names(random_graph(), *rc::gen::arbitrary<bool>());
}

RC_GTEST_PROP(SmallestBudget, OfAChainWorksAndOnePageLessDoesNot, ()) {
  expect_true_names(random_chain(12), *rc::gen::arbitrary<bool>());
}

}  // namespace
}  // namespace spillway::prefetch
