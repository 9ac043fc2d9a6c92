#include "src/plan/state_choice.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/state_home.h"
#include "src/plan/budget.h"
#include "src/plan/plan_question.h"
#include "src/plan/predicted_step.h"
#include "src/program/machine_size_model.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

using test::refusal;
using um::Bytes;

// A device that updates on the far side wherever that is faster, as the host does.
class FarUpdatingModel final : public MachineSizeModel {
 public:
  [[nodiscard]] FarUpdateSupport far_update_support() const override {
    return FarUpdateSupport::kAutomatic;
  }
};

// A network whose state is most of what it needs.
class StateChoiceTest : public testing::Test {
 protected:
  [[nodiscard]] static PlanRequest request(StateRule state, const char* planner = "joint",
                                           MemoryMode memory = MemoryMode::kManaged) {
    return {.memory = memory, .planner = &prefetch::find_planner(planner), .state = state};
  }
  [[nodiscard]] StateChoice choice(const PlanRequest& wanted) const {
    return {workload, size_model, wanted};
  }
  [[nodiscard]] static prefetch::Profile profile(const Workload& of) {
    return prefetch::model_profile(of.training().graph, prefetch::find_machine("host"));
  }
  [[nodiscard]] PlanAnswer planned(const PlanRequest& wanted, Bytes budget) const {
    const StateChoice all = choice(wanted);
    const Workload& first = all.within(budget);
    return answer({.steps = first,
                   .choice = &all,
                   .profile = profile(first),
                   .budget = budget,
                   .request = wanted});
  }
  MachineSizeModel size_model;
  nets::Network net = nets::build_network("alexnet", {.image = nets::Shape{3, 224, 224}});
  Workload workload{net, size_model, {.batch = 4, .optimizer = AdamOptions{}}};
  Bytes smallest_near = workload.need().smallest;
  Bytes smallest_far = choice(request(StateRule::kAuto)).need().smallest;
};

TEST_F(StateChoiceTest, StateThatMovesNeedsLess) {
  EXPECT_LT(smallest_far, smallest_near);
  EXPECT_EQ(choice(request(StateRule::kNear)).need().smallest, smallest_near);
  EXPECT_EQ(choice(request(StateRule::kFar)).need().resident, workload.need().resident);
}

TEST_F(StateChoiceTest, LeavesStateNearWhereThatCostsNothing) {
  const Bytes budget = workload.need().resident;
  const PlanAnswer outcome = planned(request(StateRule::kAuto), budget);
  for (const prefetch::DataBlock& block : outcome.workload->training().graph.data) {
    EXPECT_FALSE(block.is_offloadable) << block.name;
  }
}

TEST_F(StateChoiceTest, MovesStateWhereItHasNoRoom) {
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    PlanRequest wanted = request(StateRule::kAuto, "joint", memory);
    wanted.update = UpdateRule::kNear;
    const StateChoice all = choice(wanted);
    EXPECT_EQ(&all.within(smallest_near), &workload);
    const Workload& far = all.within(smallest_near - Bytes{1});
    EXPECT_EQ(&far, &all.far());
    const PlanAnswer outcome = answer({.steps = far,
                                       .choice = &all,
                                       .profile = profile(far),
                                       .budget = smallest_far,
                                       .request = wanted});
    ASSERT_EQ(outcome.workload, &far);
    const prefetch::Plan& plan = outcome.plans.training;
    const prefetch::TaskGraph& graph = far.training().graph;
    const prefetch::StateHome home{graph, prefetch::BlockSizes{graph, plan.page}, plan};
    EXPECT_GT(home.far(), Bytes{});
  }
}

TEST_F(StateChoiceTest, AutomaticallyIsNeverSlowerThanNear) {
  const Bytes budget = smallest_near;
  const PlanAnswer near = planned(request(StateRule::kNear), budget);
  const PlanAnswer best = planned(request(StateRule::kAuto), budget);
  const auto seconds = [](const PlanAnswer& each) {
    EXPECT_EQ(each.step,
              predicted_step(*each.workload, each.profile, each.plans, MemoryMode::kManaged));
    return each.step;
  };
  EXPECT_LE(seconds(best), seconds(near));
}

TEST_F(StateChoiceTest, APlannerThatLeavesStateNearIsToldSo) {
  const StateChoice automatic = choice(request(StateRule::kAuto, "vdnn-all"));
  EXPECT_EQ(&automatic.within(smallest_far), &workload);
  EXPECT_EQ(automatic.other(smallest_near), nullptr);
  EXPECT_NE(refusal([&] {
              return choice(request(StateRule::kFar, "vdnn-all"));
            }).find("planner vdnn-all leaves weights and optimizer state near"),
            std::string::npos);
}

TEST_F(StateChoiceTest, BelowTheSmallestSaysWhatWorks) {
  const std::string sentence =
      refusal([&] { return planned(request(StateRule::kAuto), smallest_far - Bytes{1}); });
  EXPECT_NE(sentence.find(std::to_string(smallest_far.count()) + " bytes"), std::string::npos)
      << sentence;
}

TEST_F(StateChoiceTest, AProfileServesBothAlike) {
  const StateChoice all = choice(request(StateRule::kAuto));
  const prefetch::Profile near = profile(workload);
  const prefetch::TaskGraph& graph = workload.training().graph;
  const prefetch::Profile far = profile_for(all.far().training().graph, graph, near);
  EXPECT_NE(far.graph, near.graph);
  EXPECT_EQ(far.durations, near.durations);
  const prefetch::TaskGraph& updating = all.far_updates()->training().graph;
  const prefetch::Profile other = profile_for(updating, graph, near);
  EXPECT_EQ(other.durations.size() + other.far_updates.size(), near.durations.size());
  EXPECT_EQ(other.durations.front(), near.durations.front());
}

// The model's fast convolution takes 0.55 of the plain one's time.
TEST(ProfileFor, AnAlgorithmThatWasNotMeasuredTakesTheModelsPartOfOneThatWas) {
  const auto graph_of = [](const std::vector<std::string>& algorithms) {
    prefetch::TaskGraph graph;
    prefetch::Task task{.name = "conv.forward", .algorithms = {}, .flops = 1e12};
    for (const std::string& name : algorithms) task.algorithms.push_back({.name = name});
    graph.tasks.push_back(task);
    return graph;
  };
  const auto times_for = [&](const std::vector<std::string>& wanted,
                             const std::vector<std::string>& measured,
                             std::vector<um::Nanoseconds> times) {
    prefetch::Profile profile;
    profile.durations = {std::move(times)};
    return profile_for(graph_of(wanted), graph_of(measured), profile).durations.front();
  };
  using Times = std::vector<um::Nanoseconds>;
  constexpr um::Nanoseconds kPlain{1000};
  constexpr um::Nanoseconds kFast{550};
  EXPECT_EQ(times_for({"direct", "winograd"}, {"direct"}, {kPlain}), (Times{kPlain, kFast}));
  EXPECT_EQ(times_for({"direct", "winograd"}, {"winograd"}, {kFast}), (Times{kPlain, kFast}));
  EXPECT_EQ(times_for({"winograd"}, {"direct", "winograd"}, {kPlain, kFast}), (Times{kFast}));
  EXPECT_EQ(times_for({"other"}, {"direct"}, {kPlain}), (Times{kPlain}));
}

// Over a slow link what is not moved counts most; a slow processor beside far memory is no help.
TEST_F(StateChoiceTest, UpdatesOnTheFarSideWhereThatIsFaster) {
  const PlanRequest wanted = request(StateRule::kFar);
  const FarUpdatingModel updates_far;
  const StateChoice all{workload, updates_far, wanted};
  prefetch::Profile times = profile(all.far());
  times.link.offload = times.link.prefetch = um::Bandwidth{0.5e9};
  times.link.far_update = um::Bandwidth{20e9};
  const Bytes budget = all.far().need().smallest;
  const PlanAnswer fast = answer(
      {.steps = all.far(), .choice = &all, .profile = times, .budget = budget, .request = wanted});
  EXPECT_EQ(fast.workload, all.far_updates());
  EXPECT_FALSE(fast.plans.training.far_runs.empty());
  times.link.far_update = um::Bandwidth{0.1e9};
  const PlanAnswer slow = answer(
      {.steps = all.far(), .choice = &all, .profile = times, .budget = budget, .request = wanted});
  EXPECT_EQ(slow.workload, &all.far());
  PlanRequest near = wanted;
  near.update = UpdateRule::kNear;
  EXPECT_EQ(StateChoice(workload, updates_far, near).with_other_updates(all.far()), nullptr);
}

// A device that is modelled only does so where it is asked to.
TEST_F(StateChoiceTest, AModelUpdatesOnTheFarSideOnRequest) {
  PlanRequest wanted = request(StateRule::kFar);
  const StateChoice automatic = choice(wanted);
  EXPECT_EQ(automatic.with_other_updates(automatic.far()), nullptr);
  wanted.update = UpdateRule::kFar;
  const StateChoice asked = choice(wanted);
  EXPECT_EQ(&asked.within(smallest_near), asked.far_updates());
}

using namespace um::literals;

// Smallest 100, resident 300, with any algorithms 350 bytes.
const prefetch::NearNeed kNeed{.resident = 300_B, .peak_with_workspace = 350_B, .smallest = 100_B};

constexpr um::Bytes kAvailable = 1000_B;
um::Bytes resolve(const char* text, um::Bytes available = kAvailable) {
  return Budget::parse(text).resolve(kNeed, available);
}

TEST(Budget, InBytesIsTakenAsItIs) {
  EXPECT_EQ(resolve("512MiB"), 512_MiB);
  EXPECT_EQ(resolve("2GB"), 2'000'000'000_B);
  EXPECT_TRUE(Budget::parse("64").is_absolute());
  EXPECT_FALSE(Budget::parse("40%").is_absolute());
}

TEST(Budget, InPercentIsOfTheResidentNeed) {
  EXPECT_EQ(resolve("40%"), 120_B);
  EXPECT_EQ(resolve("100%"), 300_B);
  EXPECT_EQ(resolve("101%"), 303_B);  // more than needed does no harm
  EXPECT_EQ(resolve("0.5%"), 2_B);    // 1.5, rounded up
}

TEST(Budget, MinGoesFromTheSmallestToTheResidentNeed) {
  EXPECT_EQ(resolve("min"), 100_B);
  EXPECT_EQ(resolve("min+0%"), 100_B);
  EXPECT_EQ(resolve("min+20%"), 140_B);  // 100 + 0.2 * (300 - 100)
  EXPECT_EQ(resolve("min+100%"), 300_B);
}

// Small weights that move in whole pages may need more than weights that stay near.
TEST(Budget, MinIsTheSmallestWhereThatIsMoreThanTheResidentNeed) {
  const prefetch::NearNeed rounded{.resident = 300_B, .smallest = 310_B};
  EXPECT_EQ(Budget::parse("min+20%").resolve(rounded, 1000_B), 310_B);
}

// Ten thousand times 2^56 bytes do not fit into 64 bits.
TEST(Budget, OfHugeNeedsEndsAtWhatNoMemoryHas) {
  const prefetch::NearNeed huge{.resident = um::Bytes{1ULL << 56U},
                                .peak_with_workspace = um::Bytes{1ULL << 56U},
                                .smallest = 100_B};
  EXPECT_EQ(Budget::parse("1000000%").resolve(huge, 1000_B), um::Bytes{1ULL << 62U});
  EXPECT_EQ(Budget::parse("min+1000000%").resolve(huge, 1000_B), um::Bytes{(1ULL << 62U) + 100});
}

TEST(Budget, AutoIsWhatARunWithoutMovesNeedsOrNineTenthsOfWhatIsThere) {
  EXPECT_EQ(resolve("auto", 1000_B), 350_B);
  EXPECT_EQ(resolve("auto", 200_B), 180_B);
}

TEST(Budget, MayHaveBlanksBeforeItsUnit) {
  EXPECT_EQ(resolve("60 %", 1000_B), resolve("60%", 1000_B));
  EXPECT_EQ(resolve("min+20 %", 1000_B), resolve("min+20%", 1000_B));
  EXPECT_EQ(resolve("2 G", 1000_B), 2_GiB);
}

TEST(Budget, RefusesEverythingElseAndSaysWhatIsAllowed) {
  for (const char* text :
       {"", "0", "0%", "-5", "-5%", "12Gib", "0.6", "min+", "min+20", "min-20%", "min+-20%", "%",
        "nan%", "inf%", "1e9%", "lots", "Auto", "99999999TiB"}) {
    EXPECT_EQ(refusal([&] {
                return Budget::parse(text);
              }).find("'" + std::string{text} + "' is no budget: give bytes"),
              0U)
        << text;
  }
}

}  // namespace
}  // namespace spillway
