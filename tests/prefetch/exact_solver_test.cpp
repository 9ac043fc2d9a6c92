#include "tests/prefetch/exact_solver.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>

#include "prefetch/bounds.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

TEST(Explore, Ratios) {}

RC_GTEST_PROP(ExactSolver, Explore, (int)) {
  static double worst[4]={0}, sum[4]={0}; static int n=0;
  static const bool _ = (std::atexit([]{ for(int i=0;i<4;++i) std::printf("%d: mean %.4f max %.4f n %d\n", i, sum[i]/n, worst[i], n); }), true); (void)_;
  const TaskGraph graph = random_chain(5);
  Profile profile = random_profile(graph);
  profile.link.latency = um::Nanoseconds{0};
  const NearNeed need = near_need(graph, Occupancy{graph, kPage});
  const std::uint64_t slack = (need.resident - need.smallest) / kPage;
  Problem given{.graph = graph,
                .profile = profile,
                .budget = need.smallest + pages(*rc::gen::inRange<std::uint64_t>(0, slack + 1)),
                .page = kPage,
                .chunk = pages(1)};
  const auto optimum = ExactSolver{given}.solve();
  if (!optimum) return;
  const Bounds bounds = lower_bounds(given);
  RC_ASSERT(bounds.offload <= *optimum);
  RC_ASSERT(bounds.beaumont <= *optimum);
  ++n;
  const char* names[] = {"greedy","dynprog","capacity"};
  for (int i=0;i<3;++i) {
    const auto r = find_planner(names[i]).plan(given);
    if (!std::holds_alternative<Plan>(r)) { std::printf("%s infeasible\n", names[i]); continue; }
    double t = double(simulate(std::get<Plan>(r), profile).makespan().count());
    double q = t/double(optimum->count());
    sum[i]+=q; worst[i]=std::max(worst[i],q);
    if (i==2 && q>1.0) std::printf("capacity %g pagetime %g diff %g duplex %d\n", q, double((kPage/profile.link.offload).count()), t-double(optimum->count()), profile.link.is_duplex);
    if (i<2) RC_ASSERT(q>=1.0);
  }
}

}  // namespace
}  // namespace spillway::prefetch
