// `joint` compared with the exact optimum of whole blocks, which it may beat by moving parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/files/json.h"
#include "prefetch/files/trace.h"
#include "prefetch/planner.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// A random step of 8 to 12 tasks: a chain forward and back, or any DAG, in which some tasks update
// a tensor in place or need a workspace. The link is of any kind. Equal seeds give equal steps on
// every machine.
class DrawnStep {
 public:
  explicit DrawnStep(std::uint64_t seed, bool is_chain) : generator_{seed} {
    const auto tasks = static_cast<int>(8 + draw(5));
    is_chain ? add_chain(tasks / 2) : add_dag(tasks);
    profile_.source = "drawn";
    profile_.graph = fingerprint(graph_);
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      profile_.durations.push_back({um::Nanoseconds{100'000 * static_cast<int>(draw(8))}});
    }
    const um::Bandwidth slow{static_cast<double>(kPage.count()) / 20e-6};
    const um::Bandwidth fast{2 * slow.bytes_per_second()};
    profile_.link = {.offload = draw(2) == 0 ? slow : fast,
                     .prefetch = draw(2) == 0 ? slow : fast,
                     .latency = um::Nanoseconds{draw(2) == 0 ? 0 : 1000},
                     .is_duplex = draw(2) == 0,
                     .copies_while_read = draw(2) == 0};
    const NearNeed need = near_need(graph_, BlockSizes{graph_, kPage});
    budget_ = need.smallest + pages((need.resident - need.smallest) / kPage * draw(70) / 100);
  }

  // Valid as long as this object lives.
  [[nodiscard]] Problem problem(bool whole_blocks) const {
    return {.graph = graph_,
            .profile = profile_,
            .budget = budget_,
            .page = kPage,
            .chunk = pages(16),
            .whole_blocks = whole_blocks};
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return generator_() % below; }
  template <typename T>
  T any_of(const std::vector<T>& all) {
    return all[draw(all.size())];
  }

  DataId new_tensor() {
    return graph_.add(DataBlock{.name = "x" + std::to_string(graph_.data.size()),
                                .size = pages(4 * (1 + draw(10)))});
  }
  Task new_task() {
    Task task{.name = "t" + std::to_string(graph_.tasks.size())};
    if (draw(3) == 0) task.algorithms = {{.workspace = pages(4 * (1 + draw(4)))}};
    return task;
  }
  void read(Task& task, DataId id) {
    if (std::ranges::count(task.reads, id) == 0) task.reads.push_back(id);
  }

  void add_chain(int layers) {
    std::vector<DataId> x;
    for (int i = 0; i < layers; ++i) {
      Task task = new_task();
      if (!x.empty()) task.reads = {x.back()};
      x.push_back(new_tensor());
      task.writes = {x.back()};
      graph_.add(task);
    }
    DataId gradient = x.back();
    for (int i = layers - 1; i >= 0; --i) {
      Task task = new_task();
      task.phase = Phase::kBackward;
      task.reads = {x[static_cast<std::size_t>(i)]};
      if (i > 0 && draw(2) == 0) read(task, x[static_cast<std::size_t>(i - 1)]);
      read(task, gradient);
      gradient = new_tensor();
      task.writes = {gradient};
      graph_.add(task);
    }
  }

  void add_dag(int tasks) {
    std::vector<DataId> tensors;
    for (int i = 0; i < tasks; ++i) {
      Task task = new_task();
      if (i > tasks / 2) task.phase = Phase::kBackward;
      for (std::uint64_t reads = tensors.empty() ? 0 : draw(4); reads > 0; --reads) {
        read(task, any_of(tensors));
      }
      if (!task.reads.empty() && draw(6) == 0) {
        task.writes = {task.reads.front()};
      } else {
        tensors.push_back(new_tensor());
        task.writes = {tensors.back()};
      }
      graph_.add(task);
    }
  }

  std::mt19937_64 generator_;
  TaskGraph graph_;
  Profile profile_;
  um::Bytes budget_;
};

// Makespans divided by optima.
struct Ratios {
  void add(um::Nanoseconds makespan, um::Nanoseconds optimum) {
    all.push_back(static_cast<double>(makespan.count()) / static_cast<double>(optimum.count()));
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double each : all) sum += each;
    return sum / static_cast<double>(all.size());
  }
  [[nodiscard]] double worst() const { return *std::ranges::max_element(all); }
  [[nodiscard]] std::string text() const {
    const auto late = std::ranges::count_if(all, [](double each) { return each > 1.03; });
    return std::to_string(all.size()) + " steps: mean " + std::to_string(mean()) + ", worst " +
           std::to_string(worst()) + ", above 1.03: " + std::to_string(late);
  }
  std::vector<double> all;
};

// In the graph's order, as all optima are.
um::Nanoseconds makespan_of_joint(Problem given) {
  given.may_reorder = false;
  const Plan plan = planned("joint", given);
  EXPECT_EQ(reason_against(given.graph, plan), "");
  return simulate(plan, given.profile).makespan();
}

// Ratios of joint's plans and of the proved bound.
struct DrawnRatios {
  Ratios joint;
  Ratios bound;
};

DrawnRatios drawn_ratios(bool is_chain, bool whole_blocks) {
  constexpr std::uint64_t kSteps = 250;
  DrawnRatios ratios;
  for (std::uint64_t seed = 1; seed <= kSteps; ++seed) {
    const DrawnStep step{seed, is_chain};
    const Problem given = step.problem(whole_blocks);
    const auto optimum = ExactSolver{given}.solve();
    if (!optimum || *optimum == um::Nanoseconds{0}) {
      ADD_FAILURE() << "no optimum of step " << seed;
      continue;
    }
    ratios.joint.add(makespan_of_joint(given), *optimum);
    ratios.bound.add(lower_bounds(given).offload_transition, *optimum);
    EXPECT_LE(ratios.bound.all.back(), 1) << seed;
    EXPECT_GE(ratios.joint.all.back(), whole_blocks ? 1 : 0) << seed;
  }
  return ratios;
}

// Parts of blocks take less time than whole ones; the bound allows 0.937 of it.
TEST(JointBesideTheOptimum, OfDrawnChains) {
  const auto [joint, bound] = drawn_ratios(true, false);
  EXPECT_LE(joint.mean(), bound.mean() + 0.01) << joint.text() << "; bound: " << bound.text();
  EXPECT_LE(joint.worst(), 1) << joint.text();
}

// The bound allows 0.919.
TEST(JointBesideTheOptimum, OfDrawnDags) {
  const auto [joint, bound] = drawn_ratios(false, false);
  EXPECT_LE(joint.mean(), bound.mean() + 0.02) << joint.text() << "; bound: " << bound.text();
  EXPECT_LE(joint.worst(), 1.031) << joint.text();
}

TEST(JointBesideTheOptimum, OfDrawnChainsInWholeBlocks) {
  const Ratios joint = drawn_ratios(true, true).joint;
  EXPECT_LE(joint.mean(), 1.001) << joint.text();
  EXPECT_LE(joint.worst(), 1.07) << joint.text();
}

// A plan's offloads free their room in the order in which they begin. The optimum's may not: it may
// copy out a block that is still read for long, and another one meanwhile.
TEST(JointBesideTheOptimum, OfDrawnDagsInWholeBlocks) {
  const Ratios joint = drawn_ratios(false, true).joint;
  EXPECT_LE(joint.mean(), 1.004) << joint.text();
  EXPECT_LE(joint.worst(), 1.15) << joint.text();
}

LinkProfile link_of(const JsonView& link) {
  return {.offload = um::Bandwidth{link.at("offload_bytes_per_second").number()},
          .prefetch = um::Bandwidth{link.at("prefetch_bytes_per_second").number()},
          .latency = um::Nanoseconds{static_cast<std::int64_t>(link.at("latency_ns").integer())},
          .is_duplex = link.at("duplex").boolean(),
          .copies_while_read = link.at("copies_while_read").boolean()};
}

// 53 recorded steps of 8 to 14 tasks, solved by another program (A* over event-driven schedules).
TEST(JointBesideTheOptimum, OfRecordedSteps) {
  const JsonFile file{SPILLWAY_STEPS "/optima.json"};
  Ratios ratios;
  for (const nlohmann::json& each : file.value()["instances"]) {
    const JsonView view{each, "optima.json"};
    const Trace trace = read_trace(JsonFile{each["trace"].dump(), "trace"});
    const Profile profile = trace_profile(trace, link_of(view.at("link")));
    const Problem given{.graph = trace.graph,
                        .profile = profile,
                        .budget = um::Bytes{view.at("budget_bytes").integer()},
                        .page = choose_page(trace.graph),
                        .chunk = chunk_for(profile.link),
                        .may_recompute = true};
    const um::Nanoseconds optimum{
        static_cast<std::int64_t>(view.at("optimum_whole_blocks_ns").integer())};
    ratios.add(makespan_of_joint(given), optimum);
  }
  EXPECT_EQ(ratios.all.size(), 53);
  EXPECT_LE(ratios.mean(), 0.92) << ratios.text();
  std::ranges::sort(ratios.all);
  EXPECT_LE(ratios.all[51], 1.0001) << ratios.text();
  // Its optimum copies a block out early, and frees the room of a later one first (see above).
  EXPECT_LE(ratios.all[52], 1.12) << ratios.text();
}

}  // namespace
}  // namespace spillway::prefetch
