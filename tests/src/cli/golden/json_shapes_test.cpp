// The names and types of all that --json and other files of JSON hold.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "tests/expect_text.h"
#include "tests/src/cli/golden/checkpoints.h"
#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr const char* kFile = "src/cli/golden/json_shapes.txt";

// Types by key, by the path of the object.
using Shape = std::map<std::string, std::map<std::string, std::set<std::string>>>;

// Adds `value`, which is at `key` of the object at `path`.
void add_shape(const json& value, const std::string& path, const std::string& key, Shape& shape) {
  if (value.is_object() && !value.empty()) {
    const std::string inner = path + (key.empty() || path.ends_with('.') ? "" : ".") + key;
    for (const auto& [name, part] : value.items()) add_shape(part, inner, name, shape);
  } else if (value.is_array() && !value.empty()) {
    for (const json& part : value) add_shape(part, path, key + "[]", shape);
  } else {
    std::string type = value.type_name();
    if (value.is_structured()) type = "empty " + type;
    if (value.is_number_integer()) type = "integer";
    if (key == "cgroup_peak_bytes") type = "integer or null";  // as the machine has one
    shape[path][key].insert(type);
  }
}

// Returns a line for each object, sorted. The elements of an array have one path.
std::string shape_of(const json& value) {
  Shape shape;
  add_shape(value, ".", "", shape);
  std::string text;
  for (const auto& [path, keys] : shape) {
    const char* before = ": {";
    text += path;
    for (const auto& [key, types] : keys) {
      text += before + key;
      for (const char* word = " "; const std::string& type : types) {
        text += word + type;
        word = " or ";
      }
      before = ", ";
    }
    text += "}\n";
  }
  return text;
}

// Returns the one document in `text`, or the array of those that have a line each.
json documents_of(const std::string& text) {
  if (json whole = json::parse(text, nullptr, false); !whole.is_discarded()) return whole;
  return json_lines({.exit_code = 0, .output = text, .errors = {}});
}

TEST(ShapeOf, HasALineForEachObject) {
  const json value = json::parse(R"({"a": 1.5, "b": {"x": true, "y": {}}, "c": {"d": {"e": 1}}})");
  EXPECT_EQ(shape_of(value), ".: {a number}\n.b: {x boolean, y empty object}\n.c.d: {e integer}\n");
}

TEST(ShapeOf, FoldsArraysAndJoinsTypes) {
  const json value =
      json::parse(R"([{"b": [{"x": 1}, {"x": null, "y": "z"}], "c": [], "d": [[1], [2.5]]}])");
  EXPECT_EQ(shape_of(value),
            ".[]: {c empty array, d[][] integer or number}\n"
            ".[].b[]: {x integer or null, y string}\n");
}

class JsonShape : public testing::Test {
 protected:
  static void expect_shape(const std::string& name, const json& value) {
    expect_text(kFile, name, shape_of(value));
  }
  void expect_file_shape(const std::string& name, const std::string& file) const {
    std::ifstream stream{folder_.file(file)};
    expect_shape(name, documents_of({std::istreambuf_iterator<char>{stream}, {}}));
  }
  static void expect_output_shape(const std::string& name, const Arguments& command) {
    const Outcome outcome =
        succeed({command, "--json -"}, "SPILLWAY_MEASURING_TIME=0.1 OMP_WAIT_POLICY=PASSIVE");
    expect_shape(name, documents_of(outcome.output));
  }
  void expect_training_shape(const std::string& name, const Arguments& more) const {
    expect_output_shape(name, {"train --conv-algorithm direct --threads 1 --batch 4", more});
  }
  [[nodiscard]] static std::string golden(const std::string& name) {
    return golden_checkpoints() + "/" + name;
  }
  [[nodiscard]] static Arguments net(const std::string& name) {
    return {"--net", golden(name + ".net")};
  }
  const Arguments kDigits{"--data", "idx:" + golden("digits")};

  TemporaryFolder folder_;
};

TEST_F(JsonShape, OfTrainings) {
  const Arguments kept{net("tiny"), kDigits, "--eval-every 2 --keep-best --checkpoint",
                       folder_.file("run")};
  expect_training_shape("train", {kept, "--steps 3 --timeline", folder_.file("trace.json")});
  expect_file_shape("train_trace", "trace.json");
  expect_file_shape("checkpoint", "run/checkpoint.json");
  expect_file_shape("checkpoint_plan", "run/step-3-plan.json");
  expect_training_shape("train_resumed", {kept, "--steps 5 --resume --early-stop 9"});
}

TEST_F(JsonShape, OfTrainingsOfOtherKinds) {
  const Arguments digits{net("tiny"), kDigits, "--steps 2 --eval-every 0"};
  expect_training_shape("train_resident", {digits, "--memory resident"});
  expect_training_shape("train_copy", {digits, "--memory copy --budget min+30% --far",
                                       "file:" + folder_.path().string()});
  expect_training_shape("train_far_state", {digits, "--state far --budget min --optimizer adamw"});
  expect_training_shape("train_micro_batches",
                        {digits, "--micro-batch-size 2 --optimizer rmsprop"});
  expect_training_shape("train_cosine", {digits, "--micro-batches 2 --schedule cosine"});
  expect_training_shape("train_averages", {net("norms"), "--steps 2 --ema 0.9 --clip-norm 1"});
  expect_training_shape("train_photos", {net("norms"), "--steps 2 --augment strong --mixup 0.2",
                                         "--data", "images:" + golden("photos")});
  expect_training_shape("train_text", {"--net gpt:1,2,8,8 --vocabulary 64 --epochs 1 --data",
                                       "text:" + golden("sums.txt")});
}

TEST_F(JsonShape, OfPlans) {
  const Arguments lenet = "plan --net lenet --batch 8 --conv-algorithm direct --machine v100";
  expect_output_shape("plan", {lenet, "--budget min+20% --noise 10% --out",
                               folder_.file("plan.json"), "--timeline", folder_.file("time.json")});
  expect_file_shape("plan_out", "plan.json");
  expect_file_shape("plan_timeline", "time.json");
  expect_shape("plan_infeasible",
               documents_of(run_spillway({lenet, "--budget 1KiB --json -"}).output));
  expect_output_shape("plan_paleo", {lenet, "--budget 100% --planner vdnn-all --model paleo"});
  expect_output_shape("plan_copy", {lenet, "--budget min+20% --memory copy"});
  expect_output_shape("plan_far_state", {lenet, "--budget min --state far"});
  expect_output_shape("plan_micro_batch", {lenet, "--budget 100% --micro-batch-size 4"});
  expect_output_shape("plan_ranks", {lenet, "--budget 100% --ranks 4 --interconnect 25GB/s"});
  if (SPILLWAY_SLOW_BUILD) return;
  expect_output_shape("plan_zero", {lenet,
                                    "--budget min+20% --ranks 4 --interconnect 25GB/s --zero 1 "
                                    "--bucket auto --optimizer adam"});
}

TEST_F(JsonShape, OfPlansOfTraces) {
  const Arguments bert{"plan --machine a100 --planner capacity --budget 50% --trace-in",
                       SPILLWAY_TESTS_FOLDER "/prefetch/traces/bert-base-b256-a100.json"};
  expect_output_shape("plan_trace", bert);
  expect_output_shape(
      "plan_trace_ranks",
      {"plan --machine a100 --budget 100% --ranks 2 --interconnect 25GB/s --trace-in",
       SPILLWAY_TESTS_FOLDER "/prefetch/traces/updates/5025.json"});
}

TEST_F(JsonShape, OfProfilesAndSweeps) {
  const Arguments profile{"profile --batch 4 --conv-algorithm direct --threads 1", net("tiny")};
  succeed({profile, "--out", folder_.file("measured.json")}, "SPILLWAY_MEASURING_TIME=0.1");
  expect_file_shape("profile", "measured.json");
  succeed({profile, "--machine v100 --out", folder_.file("model.json")});
  expect_file_shape("profile_of_machine", "model.json");
  expect_output_shape("sweep",
                      "sweep --net lenet --batch 8 --conv-algorithm direct --machines v100 "
                      "--budgets min,50% --links x1,x2 --planners joint,capacity,resident");
}

TEST_F(JsonShape, OfBenches) {
  const Arguments digits{"--quick --device host --conv-algorithm direct --threads 1"};
  expect_output_shape("bench_link", {"bench link --quick --device host --sizes 4KiB --far",
                                     "file:" + folder_.path().string()});
  expect_output_shape("bench_paging", "bench paging --quick --patterns stream");
  if (SPILLWAY_SLOW_BUILD) return;
  expect_output_shape("bench_train",
                      {"bench train --net lenet:4 --batches 2", digits, "--strategies joint,copy"});
  expect_output_shape("bench_planners", {"bench planners --net lenet:4", digits,
                                         "--planners joint,capacity,superneurons"});
}

TEST_F(JsonShape, OfLists) {
  expect_output_shape("nets", "nets lenet --threads 1");
  expect_output_shape("checkpoint_verify", {"checkpoint verify", golden("best")});
  // A machine with a GPU says more of that.
  expect_shape("devices", json_of("devices --json -").at(0));
  if (!SPILLWAY_SLOW_BUILD) expect_output_shape("nets_all", "nets --threads 1");
}

TEST_F(JsonShape, OfWhatCheckpointsAreAskedFor) {
  const Arguments host = "--device host --threads 1";
  const Arguments digits{golden("best"), kDigits, host};
  expect_output_shape("evaluate", {"evaluate --best", digits});
  expect_output_shape("predict", {"predict --count 2 --top 2 --logits", digits});
  expect_output_shape("predict_files",
                      {"predict", golden("images"), golden("photos") + "/val", host});
  const Arguments text{golden("gpt"), host};
  expect_output_shape("sample", {"sample --tokens 3", text});
  expect_output_shape("evaluate_text", {"evaluate --data", "text:" + golden("sums.txt"), text});
  expect_output_shape("export", {"export --to hf", golden("gpt"), folder_.file("x.safetensors")});
}

TEST_F(JsonShape, OfTheTableOfSteps) {
  const std::string run = folder_.file("run.json");
  succeed(
      {"train --batch 4 --steps 2 --eval-every 2 --threads 1 --json", run, net("tiny"), kDigits});
  const std::string table = succeed({"report --csv -", run}).output;
  expect_text(kFile, "report_csv", table.substr(0, table.find('\n') + 1));
}

// Reads the names in this source, as each test runs in a process of its own.
TEST(JsonShapes, AreAllAskedFor) {
  std::ifstream file{SPILLWAY_TESTS_FOLDER "/src/cli/golden/json_shapes_test.cpp"};
  const std::string source{std::istreambuf_iterator<char>{file}, {}};
  const std::regex asked{R"_((_shape\(|kFile,)\s*"(\w+)")_"};
  std::set<std::string> names;
  for (std::sregex_iterator call{source.begin(), source.end(), asked}, end; call != end; ++call) {
    names.insert(call->str(2));
  }
  ASSERT_GE(names.size(), 42U);
  expect_only_sections(kFile, names);
}

}  // namespace
}  // namespace spillway::test
