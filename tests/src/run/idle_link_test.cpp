#include <gtest/gtest.h>

#include <set>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/runtime/step_layout.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/program/machine_size_model.h"
#include "src/run/executor.h"
#include "src/run/link_profiler.h"
#include "src/run/measured_profile.h"

namespace spillway {
namespace {

using um::Bytes;
using um::Nanoseconds;

constexpr Bytes kLinkPage{4096};

// The large move has 32 bytes and takes 3200 ns.
MoveTimes moves_with(Nanoseconds of_one_byte) {
  return {.small = Bytes{1},
          .large = Bytes{32},
          .of_small = of_one_byte,
          .of_large = Nanoseconds{3200}};
}

TEST(MoveTimes, HaveALatencyBesideTheRateOfALargeMove) {
  EXPECT_EQ(moves_with(Nanoseconds{750}).latency(), Nanoseconds{650});  // a byte takes 100 ns
  EXPECT_EQ(moves_with(Nanoseconds{90}).latency(), Nanoseconds{0});
}

// Two moves of 1000 bytes in 4000 ns: without 500 ns each, 2000 bytes in 3000 ns.
TEST(MovedBytes, HaveABandwidthWithoutTheLatencyOfTheirMoves) {
  MovedBytes moved;
  moved.add(Bytes{1000}, Nanoseconds{1500});
  moved.add(Bytes{1000}, Nanoseconds{2500});
  EXPECT_DOUBLE_EQ(moved.bandwidth(Nanoseconds{500}).bytes_per_second(), 2e9 / 3);
  EXPECT_DOUBLE_EQ(moved.bandwidth(Nanoseconds{5000}).bytes_per_second(), 1e9);  // half the time
}

// 300 ns one way and 100 ns the other are 300 ns at once and 400 ns one after the other.
TEST(ExchangeTimes, AreDuplexWhenTheyAreCloserToOneThanToBothInTurn) {
  ExchangeTimes times{.away = Nanoseconds{300}, .back = Nanoseconds{100}, .both = Nanoseconds{349}};
  EXPECT_TRUE(times.is_duplex());
  times.both = Nanoseconds{350};
  EXPECT_FALSE(times.is_duplex());
  EXPECT_TRUE(ExchangeTimes{}.is_duplex());
}

// A link that moves in no time, and fails when a page is moved to where it already is.
class PagesOfALink final : public LinkUnderTest {
 public:
  explicit PagesOfALink(std::uint64_t pages) : pages_{pages} {}
  [[nodiscard]] Bytes size() const override { return pages_ * kLinkPage; }
  [[nodiscard]] bool has_all_near() const { return away_.empty(); }

 private:
  void start_away(Part part, um::Completion done) override {
    for_each_page(part, [this](std::uint64_t page) { EXPECT_TRUE(away_.insert(page).second); });
    done(nullptr);
  }
  void start_back(Part part, um::Completion done) override {
    for_each_page(part, [this](std::uint64_t page) { EXPECT_EQ(away_.erase(page), 1U); });
    done(nullptr);
  }
  template <class Visit>
  void for_each_page(Part part, const Visit& visit) const {
    EXPECT_LE(part.offset + part.size, size());
    for (Bytes at = part.offset; at < part.offset + part.size; at += kLinkPage)
      visit(at / kLinkPage);
  }

  std::uint64_t pages_;
  std::set<std::uint64_t> away_;
};

TEST(IdleLink, MovesWhatIsThereAndLeavesItNear) {
  PagesOfALink link{5};
  const IdleLinkTimes times = measure_idle_link(link, kLinkPage, {});
  EXPECT_TRUE(link.has_all_near());
  EXPECT_EQ(times.away.small, kLinkPage);
  EXPECT_EQ(times.back.large, 5 * kLinkPage);
  EXPECT_LT(times.away.of_large, Nanoseconds::max());
  EXPECT_LT(times.exchange.both, Nanoseconds::max());
}

TEST(IdleLink, HasNothingToExchangeWithASinglePage) {
  PagesOfALink link{1};
  EXPECT_TRUE(measure_idle_link(link, kLinkPage, {}).exchange.is_duplex());
  EXPECT_TRUE(link.has_all_near());
}

TEST(IdleLink, IsLeftWhenTheUserStops) {
  PagesOfALink link{2};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(static_cast<void>(measure_idle_link(link, kLinkPage, stop.get_token())),
               Interrupted);
}

class LeastSlab : public testing::Test {
 protected:
  // Returns the extent of the slab in which a plan's training step runs.
  [[nodiscard]] Bytes extent(const char* planner, Bytes budget) const {
    const Plans plans = answer({.steps = workload,
                                .profile = profile,
                                .budget = budget,
                                .request = {.memory = MemoryMode::kManaged,
                                            .planner = &prefetch::find_planner(planner)}})
                            .plans;
    return prefetch::StepLayout{workload.training().graph, plans.training}.placement.extent;
  }

  nets::Network net = nets::build_network("vgg16", {.image = nets::Shape{3, 64, 64}});
  Workload workload{net, MachineSizeModel{}, {.batch = 8}};
  prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
};

TEST_F(LeastSlab, IsWhatTheLargestTaskNeeds) {
  const prefetch::BlockSizes block_sizes{workload.training().graph, workload.page()};
  EXPECT_EQ(min_slab(workload) + block_sizes.pinned(),
            near_need(workload.training().graph, block_sizes).smallest);
}

TEST_F(LeastSlab, IsNoMoreThanAnyPlanTakes) {
  const prefetch::NearNeed& need = workload.need();
  const Bytes middle{(need.smallest.count() + need.resident.count()) / 2};
  for (const char* planner : {"joint", "capacity", "superneurons", "recompute", "vdnn-all"}) {
    for (const Bytes budget : {middle, need.resident}) {
      EXPECT_GE(extent(planner, budget), min_slab(workload)) << planner;
    }
  }
}

}  // namespace
}  // namespace spillway
