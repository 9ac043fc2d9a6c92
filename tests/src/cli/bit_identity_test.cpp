// One question about planning has one answer, whichever command is asked.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
    for (const char* figure :
         {"budget_bytes", "min_budget_bytes", "resident_bytes", "planner", "recomputed_tasks",
          "algorithms", "micro_batch_size", "micro_batches"}) {
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

// Times of micro-batches are a model's in both, so that the cut is the same; those of `train` are
// measured after it.
TEST_F(OneAnswer, IsThatOfABatchThatIsCut) {
  for (const char* question : {"--memory managed --budget 60% --micro-batches auto",
                               "--memory copy --budget min --micro-batches auto",
                               "--memory managed --budget 70% --micro-batch-size 24"}) {
    const json planned = json_of({"plan", kStep, "--machine host", question, "--json -"});
    const json train =
        json_of({"train", kStep, "--device host --steps 1 --dry-run", question, "--json -"})
            .at("dry_run");
    EXPECT_GT(planned.at("micro_batches"), 1) << question;
    for (const char* figure : {"micro_batch_size", "micro_batches", "budget_bytes",
                               "min_budget_bytes", "resident_bytes"}) {
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

// The bench keeps state near, and measures times of its own.
TEST_F(OneAnswer, IsThatOfPlanAndBench) {
  const json rows =
      json_of(
          "bench train --net lenet:64 --batches 64 --budgets min+50%,80% --strategies "
          "capacity,joint,copy --rounds 1 --steps 2 --seconds 60 --threads 1 --device host "
          "--json -")
          .at("rows");
  std::size_t compared = 0;
  for (const json& row : rows) {
    if (row.at("series") != "budget" || row.at("planner").is_null()) continue;
    const std::string budget = row.at("budget");
    const json planned = json_of(
        {"plan", kStep, "--machine host --state near --memory", row.at("memory").get<std::string>(),
         "--planner", row.at("planner").get<std::string>(), "--budget", budget, "--json -"});
    EXPECT_FALSE(row.contains("failed")) << budget;
    EXPECT_EQ(planned.at("budget_bytes"), row.at("budget_bytes")) << budget;
    EXPECT_EQ(planned.at("resident_bytes"), row.at("resident_bytes")) << budget;
    EXPECT_LE(row.at("near_peak_bytes"), planned.at("budget_bytes")) << budget;
    ++compared;
  }
  EXPECT_EQ(compared, 6U);
}

// The main rule: budgets, planners, memory modes, far memories and paging mechanisms change no bit
// of a training's losses and weights.

constexpr bool kIsSlow = SPILLWAY_SLOW_BUILD != 0;  // without optimisation, or with a sanitizer

// The results that must not change.
struct Trained {
  std::vector<double> losses;
  std::string weights;
  bool operator==(const Trained&) const = default;
};

// One configuration of a training.
struct Way {
  std::string name;
  Arguments flags;
  bool has_no_faults = false;  // planned, with managed memory
};

Way managed(const std::string& budget, const std::string& paging = "auto",
            const std::string& recompute = "auto") {
  return {.name = "managed, capacity, " + budget + ", " + paging + ", recompute " + recompute,
          .flags = {"--budget", budget, "--paging", paging, "--recompute", recompute},
          .has_no_faults = true};
}

Way on_demand(const std::string& budget, const std::string& paging = "auto") {
  return {.name = "managed, on-demand, " + budget + ", " + paging,
          .flags = {"--planner", "on-demand", "--budget", budget, "--paging", paging}};
}

Way copy(const std::string& budget, const std::string& planner = "joint") {
  return {.name = "copy, " + planner + ", " + budget,
          .flags = {"--memory", "copy", "--planner", planner, "--budget", budget}};
}

Way with_file(Way way, const TemporaryFolder& folder) {
  way.name += ", far file";
  way.flags = {way.flags, "--far", "file:" + folder.path().string()};
  return way;
}

// Returns a configuration of each mode, and of each planner and far memory.
std::vector<Way> few_ways(const TemporaryFolder& folder) {
  return {managed("min"), with_file(on_demand("min", "memfd"), folder),
          with_file(copy("min+20%"), folder)};
}

// Returns configurations that cover each budget, planner, mode, far memory and mechanism.
std::vector<Way> many_ways(const TemporaryFolder& folder) {
  std::vector<Way> ways = few_ways(folder);
  if (kIsSlow) return ways;
  for (const char* budget : {"100%", "min+50%", "min+20%"}) ways.push_back(managed(budget));
  ways.push_back(managed("min", "memfd", "off"));
  if (has_capability("uffd_move")) {
    ways.push_back(with_file(managed("min+20%", "uffd", "off"), folder));
  } else {
    std::puts(
        "this kernel or container has no UFFDIO_MOVE: the ways with --paging uffd are left out");
  }
  ways.push_back(with_file(managed("min", "memfd"), folder));
  ways.push_back(on_demand("100%"));
  ways.push_back(on_demand("min+20%"));
  ways.push_back(with_file(on_demand("min+50%"), folder));
  ways.push_back(copy("min"));
  ways.push_back(copy("min+50%", "on-demand"));
  ways.push_back(with_file(copy("min", "on-demand"), folder));
  return ways;
}

class BitIdentity : public testing::Test {
 protected:
  // Trains three steps and checks every line of the report.
  [[nodiscard]] static Trained train(const Arguments& flags, bool has_no_faults) {
    const Outcome outcome = run_spillway({"train --steps 3 --json -", flags});
    const json summary = summary_of(outcome);
    Trained trained{.losses = {}, .weights = summary.value("weights_sha256", "")};
    EXPECT_EQ(trained.weights.size(), 64U);
    for (const json& line : json_lines(outcome)) {
      if (!line.contains("loss")) continue;
      trained.losses.push_back(line.at("loss"));
      EXPECT_LE(line.at("near_peak_bytes"), summary.at("budget_bytes"));
      if (has_no_faults) {
        EXPECT_EQ(line.at("faults"), 0);
        EXPECT_EQ(line.at("evictions"), 0);
      }
    }
    return trained;
  }

  // Expects all `ways` to give the bits of the resident training.
  void expect_identical(const Arguments& net, const std::vector<Way>& ways) const {
    const Trained resident = train({net, "--memory resident"}, false);
    ASSERT_EQ(resident.losses.size(), 3U);
    for (const double loss : resident.losses) EXPECT_TRUE(std::isfinite(loss));
    EXPECT_NE(resident.losses[0], resident.losses[1]);
    EXPECT_NE(resident.losses[1], resident.losses[2]);
    if (kIsSlow) std::puts("a slow build: fewer configurations");
    for (const Way& way : ways) {
      SCOPED_TRACE(way.name);
      const Trained other = train({net, way.flags}, way.has_no_faults);
      EXPECT_EQ(other.losses, resident.losses);
      EXPECT_EQ(other.weights, resident.weights);
    }
  }

  // Measures a profile once for all configurations of a network.
  [[nodiscard]] Arguments profiled(const Arguments& net) const {
    const std::string path = folder_.file("profile.json");
    succeed({"profile --out", path, net});
    return {net, "--profile", path};
  }

  TemporaryFolder folder_;
};

TEST_F(BitIdentity, OfLenetHoldsWhateverTheMemory) {
  const Arguments net = "--net lenet --batch 8 --conv-algorithm direct";
  expect_identical(profiled(net), many_ways(folder_));
}

TEST_F(BitIdentity, OfResnet18HoldsWhateverTheMemory) {
  const Arguments net = "--net resnet18 --batch 2 --image-size 32 --conv-algorithm direct";
  expect_identical(profiled(net), few_ways(folder_));
}

// Uses dropout, with new masks each step, and updates that wait for all gradients.
TEST_F(BitIdentity, OfTransformersHoldsWhateverTheMemory) {
  const Arguments gpt = "--net gpt:2,4,64,48 --dropout 0.1 --optimizer adamw --clip-norm 1";
  expect_identical(profiled({gpt, "--vocabulary 300 --batch 8"}), few_ways(folder_));
  if (kIsSlow) return;
  const Arguments llama = "--net llama:2,4,2,64,96,48 --vocabulary 300 --batch 8";
  expect_identical(profiled(llama), {managed("min"), on_demand("min"), copy("min+20%")});
}

// bfloat16 kernels have conversions and products of their own.
TEST_F(BitIdentity, HoldsInBf16Too) {
  if (!has_capability("bf16")) GTEST_SKIP() << "this processor does not compute in bf16";
  const Arguments bf16 = "--precision bf16";
  std::vector<Way> few{managed("min"), copy("min+20%")};
  std::vector<Arguments> nets{"--net gpt:2,4,64,48 --vocabulary 300 --batch 8 --dropout 0.1"};
  if (!kIsSlow) {
    few.insert(few.end(), {managed("min+20%"), on_demand("min"), copy("min", "on-demand"),
                           with_file(managed("min"), folder_)});
    nets.insert(nets.end(), {"--net lenet --batch 8", "--net resnet18 --batch 2 --image-size 32"});
  }
  for (const Arguments& net : nets) expect_identical(profiled({net, bf16}), few);
}

// Two numbers of optimizer state per parameter, and a learning rate that changes per step.
TEST_F(BitIdentity, HoldsWithOtherOptimizersToo) {
  const Arguments net = "--net lenet --batch 32 --conv-algorithm direct";
  for (const char* optimizer : {"adam", "adamw"}) {
    SCOPED_TRACE(optimizer);
    const Arguments measured = profiled({net, "--optimizer", optimizer});
    expect_identical({measured, "--weight-decay 0.01 --schedule cosine"},
                     {managed("min"), on_demand("min"), copy("min")});
  }
  expect_identical({profiled(net), "--nesterov --warmup-steps 2"}, {managed("min"), copy("min")});
}

// A plan with Winograd uses the same algorithms, hence the same bits, in every mode that can run
// it. It has whole blocks and no recomputation, so that the copy mode can run it, too.
TEST_F(BitIdentity, HoldsForAPlanWithWinograd) {
  const Arguments net = "--net vgg16 --batch 2 --image-size 32";
  if (kIsSlow) GTEST_SKIP() << "a slow build: VGG-16 is too large for it";
  const std::string plan = folder_.file("plan.json");
  if (!json_of(
           {"plan --conv-algorithm winograd --memory copy --budget min+20% --machine host --out",
            plan, "--json -", net})
           .at("algorithms")
           .contains("winograd")) {
    GTEST_SKIP() << "oneDNN has no Winograd convolution on this machine";
  }
  const Arguments fixed = {profiled({net, "--conv-algorithm winograd"}), "--plan", plan};

  expect_identical(fixed, {{.name = "managed", .flags = {}, .has_no_faults = true},
                           {.name = "copy", .flags = {"--memory", "copy"}}});
}

}  // namespace
}  // namespace spillway::test
