// One question about planning has one answer, whichever command is asked.

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

const Arguments kStep = "--net lenet --batch 64 --threads 1";

// Measured times, which `plan` and `train` read.
class OneAnswer : public ::testing::Test {
 protected:
  void SetUp() override {
    static_cast<void>(succeed({"profile", kStep, "--device host --out", profile()}));
  }
  [[nodiscard]] std::string profile() const { return folder_.file("profile.json"); }

  // `plan` beside a training that does all but train.
  void expect_same(const Arguments& question) const {
    const json planned = json_of({"plan", kStep, "--profile", profile(), question, "--json -"});
    const json train = json_of({"train", kStep, "--device host --steps 1 --dry-run --profile",
                                profile(), question, "--json -"})
                           .at("dry_run");
    const std::string asked = testing::PrintToString(question);
    EXPECT_EQ(planned.at("makespan_seconds"), train.at("predicted_step_seconds")) << asked;
    EXPECT_EQ(planned.at("offloaded_bytes"), train.at("planned_offload_bytes")) << asked;
    EXPECT_EQ(planned.at("prefetched_bytes"), train.at("planned_prefetch_bytes")) << asked;
    for (const char* figure : {"budget_bytes", "min_budget_bytes", "resident_bytes", "planner",
                               "recomputed_tasks", "algorithms", "sub_batch", "sub_steps"}) {
      EXPECT_EQ(planned.at(figure), train.at(figure)) << figure << " of " << asked;
    }
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(OneAnswer, IsThatOfPlanAndTrain) {
  for (const char* question : {"--memory managed --budget min", "--memory managed --budget min+30%",
                               "--memory managed --budget 90%", "--memory copy --budget min",
                               "--memory copy --budget min+30%", "--memory copy --budget 90%",
                               "--memory managed --budget min+30% --planner capacity",
                               "--memory managed --budget min+30% --planner modnn",
                               "--memory copy --budget 95% --planner superneurons",
                               "--memory managed --budget min+30% --recompute off",
                               "--memory managed --budget min+30% --state near",
                               "--memory managed --budget min+30% --state far",
                               "--memory copy --budget min+30% --update far"}) {
    expect_same(question);
  }
}

TEST_F(OneAnswer, IsThatOfAPlanInAFile) {
  const TemporaryFolder folder;
  const std::string file = folder.file("plan.json");
  const json made = json_of({"plan", kStep, "--profile", profile(),
                             "--memory copy --budget min+50% --json - --out", file});
  const json read =
      json_of({"plan", kStep, "--profile", profile(), "--memory copy --plan", file, "--json -"});
  for (const auto& [figure, value] : made.items()) {
    if (figure == "planning_seconds") continue;
    EXPECT_EQ(read.at(figure), value) << figure;
  }
}

// Times of sub-batches are a model's in both, so that the cut is the same; those of `train` are
// measured after it.
TEST_F(OneAnswer, IsThatOfABatchThatIsCut) {
  for (const char* question : {"--memory managed --budget 60% --sub-batch auto",
                               "--memory copy --budget min --sub-batch auto",
                               "--memory managed --budget 70% --sub-batch 24"}) {
    const json planned = json_of({"plan", kStep, "--machine host", question, "--json -"});
    const json train =
        json_of({"train", kStep, "--device host --steps 1 --dry-run", question, "--json -"})
            .at("dry_run");
    EXPECT_GT(planned.at("sub_steps"), 1) << question;
    for (const char* figure :
         {"sub_batch", "sub_steps", "budget_bytes", "min_budget_bytes", "resident_bytes"}) {
      EXPECT_EQ(planned.at(figure), train.at(figure)) << figure << " of " << question;
    }
  }
}

// The sweep keeps state near unless it is told otherwise.
TEST_F(OneAnswer, IsThatOfPlanAndSweep) {
  struct Question {
    Arguments both;
    Arguments plan;
    const char* planners;
  };
  for (const Question& question :
       {Question{{}, "--state near", "joint,capacity,modnn"},
        Question{"--state far", {}, "joint,fractional"}, Question{"--update far", {}, "joint"},
        Question{"--memory copy", "--state near", "joint,vdnn-all"}}) {
    const json points =
        json_of({"sweep --net lenet --batch 64 --machines v100 --budgets min,min+30% --planners",
                 question.planners, question.both, "--json -"})
            .at("points");
    for (const json& point : points) {
      const std::string planner = point.at("planner");
      const std::string budget =
          std::to_string(point.at("budget_bytes").get<std::uint64_t>()) + "B";
      const Outcome outcome =
          run_spillway({"plan --net lenet --batch 64 --machine v100 --planner", planner, "--budget",
                        budget, question.both, question.plan, "--json -"});
      const json planned = json::parse(outcome.output);
      ASSERT_EQ(planned.at("feasible"), point.at("feasible")) << planner << " within " << budget;
      if (!point.at("feasible")) {
        EXPECT_EQ(planned.at("min_budget_bytes"), point.at("smallest_budget_bytes")) << planner;
        continue;
      }
      for (const char* figure :
           {"makespan_seconds", "compute_seconds", "bounds", "peak_bytes", "offloaded_bytes",
            "prefetched_bytes", "recomputed_tasks", "min_budget_bytes", "resident_bytes"}) {
        EXPECT_EQ(planned.at(figure), point.at(figure)) << figure << " by " << planner;
      }
    }
  }
}

}  // namespace
}  // namespace spillway::test
