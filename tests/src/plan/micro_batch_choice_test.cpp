#include "src/plan/micro_batch_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "prefetch/block_sizes.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/budget.h"
#include "src/plan/workload.h"
#include "src/program/machine_size_model.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

using prefetch::BatchCut;
using um::Bytes;

class MicroBatchSearchTest : public testing::Test {
 protected:
  [[nodiscard]] BatchCut choose(const char* planner, Bytes budget, std::size_t batch = 64) const {
    return MicroBatchSearch{
        {.network = net,
         .size_model = size_model,
         .machine = machine,
         .step = {.batch = batch},
         .budget = budget,
         .request = {.planner = &prefetch::find_planner(planner), .state = StateRule::kNear}}}
        .choose();
  }
  // What a run in micro-batches of `size` needs at least.
  [[nodiscard]] Bytes smallest(std::size_t size, std::size_t batch = 64) const {
    return Workload{net, size_model, {.batch = batch}, all_of(batch, prefetch::cut(batch, size))}
        .need()
        .smallest;
  }
  nets::Network net = nets::build_network("resnet18", {.image = nets::Shape{3, 128, 128}});
  MachineSizeModel size_model;
  prefetch::Machine machine = prefetch::find_machine("v100");
};

// Every rule finds sizes for a budget that a whole batch does not fit in, and leaves a batch whole
// where nothing is in short supply.
TEST_F(MicroBatchSearchTest, ChoosesSmallMicroBatchesForSmallBudgets) {
  const Bytes budget{260U << 20U};
  ASSERT_GT(smallest(256, 256), budget);
  EXPECT_GE(choose("modnn", budget, 256).count, 2U);
  EXPECT_GE(choose("vdnn+", 2 * budget, 256).count, 2U);
  EXPECT_GE(choose("capacity", smallest(16)).count, 4U);
  for (const char* name : {"modnn", "vdnn+", "capacity"}) {
    EXPECT_EQ(choose(name, 20 * budget), (BatchCut{.size = 64, .count = 1})) << name;
  }
}

// At batch 2 the sums of gradients, which micro-batches keep, are more than a whole batch needs
// beside its weights.
TEST_F(MicroBatchSearchTest, LeavesABatchWholeWhereOnlyThatFits) {
  const Bytes budget = smallest(2, 2);
  ASSERT_LT(budget, smallest(1, 2));
  EXPECT_EQ(choose("modnn", budget, 2), (BatchCut{.size = 2, .count = 1}));
}

TEST_F(MicroBatchSearchTest, SaysWhatOneSampleNeeds) {
  const std::string sentence = test::refusal([&] { return choose("capacity", Bytes{1U << 20U}); });
  EXPECT_NE(sentence.find("in micro-batches of 1, "), std::string::npos) << sentence;
  constexpr std::string_view kIs = "works is ";
  const Bytes named{std::stoull(sentence.substr(sentence.find(kIs) + kIs.size()))};
  EXPECT_GT(choose("capacity", named).count, 1U) << sentence;
}

// Of 1024 images of one pixel, no activation has more than 8 KiB. What an evaluation says of each
// is more than a quarter of a page that suits them.
TEST(RunPage, IsTooLargeForTheEvaluationsResultToMove) {
  nets::Builder builder{"thin", {1, 1, 1}};
  const nets::NodeId hidden = builder.linear("fc1", builder.input(), {.features = 2});
  const nets::Network net = builder.build(builder.linear("fc2", hidden, {.features = 2}));
  const MachineSizeModel size_model;
  const StepOptions options{.batch = 1024};
  const Workload workload{net, size_model, options};
  const Step& evaluation = workload.evaluation();
  const Bytes page = workload.page();
  EXPECT_GT(page, step_page(workload.training().graph, size_model));
  EXPECT_FALSE(
      (prefetch::BlockSizes{evaluation.graph, page}.is_movable(evaluation.results.front())));
}

}  // namespace
}  // namespace spillway
