#include "src/sweep/scenario.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway {
namespace {

using um::Bytes;

// 100 to 210 in twelve: 10 apart.
TEST(LinearBudgets, GoFromTheSmallestToTheResidentNeed) {
  const std::vector<Bytes> budgets =
      linear_budgets({.resident = Bytes{210}, .smallest = Bytes{100}}, 12);
  ASSERT_EQ(budgets.size(), 12U);
  EXPECT_EQ(budgets.front(), Bytes{100});
  EXPECT_EQ(budgets[1], Bytes{110});
  EXPECT_EQ(budgets.back(), Bytes{210});
}

// A range of 25 in three steps: 8.33, 16.67 and 25, rounded down.
TEST(LinearBudgets, RoundDownAndEndExactly) {
  const std::vector<Bytes> budgets =
      linear_budgets({.resident = Bytes{25}, .smallest = Bytes{0}}, 4);
  EXPECT_EQ(budgets, (std::vector{Bytes{0}, Bytes{8}, Bytes{16}, Bytes{25}}));
}

TEST(LinearBudgets, DoNotOverflow) {
  const Bytes huge{1ULL << 62U};
  EXPECT_EQ(linear_budgets({.resident = huge, .smallest = Bytes{0}}, 1000).back(), huge);
}

TEST(WithFasterLink, ScalesBothDirectionsAndNothingElse) {
  const prefetch::Machine machine = prefetch::find_machine("v100");
  const prefetch::Machine faster = with_faster_link(machine, 4);
  EXPECT_DOUBLE_EQ(faster.link.offload.bytes_per_second(), 50e9);
  EXPECT_DOUBLE_EQ(faster.link.prefetch.bytes_per_second(), 50e9);
  EXPECT_EQ(faster.link.latency, machine.link.latency);
}

}  // namespace
}  // namespace spillway
