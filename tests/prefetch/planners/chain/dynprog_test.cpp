#include "tests/prefetch/drawn_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

using DynProg = ToyChain;

// y0 has 8 pages, the others 2, and b4 needs 2 pages more than there are: greedy must offload y0, 8
// pages each way, dynprog offloads one of 2 pages. A page takes 200 ns.
TEST_F(DynProg, OffloadsASmallActivationWhereGreedyTakesTheFirst) {
  graph.data[0].size = pages(8);
  profile.graph = fingerprint(graph);
  const um::Bandwidth rate{static_cast<double>(kPage.count()) / 200e-9};
  profile.link = {.offload = rate, .prefetch = rate};
  const Plan plan = plan_with("dynprog", 18);
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  // Greedy: y0 leaves from 200 to 1800, b4 (600 without waiting) runs until 1900; y0 comes back
  // when b3 needs less, at the earliest after b4: until 3500, then b1.
  EXPECT_EQ(makespan(plan_with("greedy", 18)), 3600ns);
  EXPECT_LE(makespan(plan), 1800ns);
}

}  // namespace
}  // namespace spillway::prefetch
