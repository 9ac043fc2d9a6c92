// Resumed trainings continue as the original ones.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::Arguments;
using test::run_spillway;
using test::succeed;
using test::TemporaryFolder;

class Resumed : public testing::Test {
 protected:
  [[nodiscard]] std::string checkpoint() const { return folder_.file("checkpoint"); }
  [[nodiscard]] static json train(const Arguments& flags) {
    return summary_of(
        run_spillway({"train --net lenet --batch 8 --conv-algorithm direct --json -", flags}));
  }
  [[nodiscard]] Arguments kept(const Arguments& flags) const {
    return {"--checkpoint", checkpoint(), flags};
  }
  [[nodiscard]] static std::string hash(const json& summary) {
    return summary.value("weights_sha256", "none");
  }

  TemporaryFolder folder_;
};

TEST_F(Resumed, TrainingKeepsItsSettings) {
  const Arguments settings = "--momentum 0.5 --weight-decay 0.01 --lr 0.03 --threads 1";
  const json whole = train({settings, "--steps 6"});
  static_cast<void>(train({kept(settings), "--steps 3"}));

  const json resumed = train(kept("--resume --steps 6"));

  EXPECT_EQ(hash(resumed), hash(whole));
  EXPECT_EQ(resumed.value("learning_rate", json{}).dump(), "0.03");
  const std::string backend = resumed.value("backend", "");
  EXPECT_TRUE(backend.ends_with(", 1 thread")) << backend;
}

// Its path is kept in full: the next start may be in another folder.
TEST_F(Resumed, TrainingKeepsItsFarFile) {
  const std::string far = folder_.file("far");
  std::filesystem::create_directory(far);
  const Arguments near = "--memory managed --budget min+20%";
  static_cast<void>(
      train({kept(near), "--steps 2 --far", "file:" + std::filesystem::relative(far).string()}));

  EXPECT_EQ(train(kept("--resume --steps 3")).value("far", ""), "file:" + far);
  EXPECT_EQ(train(kept("--resume --steps 4 --far ram")).value("far", ""), "ram");

  static_cast<void>(train(kept({"--resume --steps 5 --far", "file:" + far + "/named"})));
  std::filesystem::remove(far);
  const auto outcome = run_spillway(
      {"train --net lenet --batch 8 --conv-algorithm direct --resume --steps 6", kept({})});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.errors.find("warning: the checkpoint's far memory was a file in " + far +
                                ", which is not there; --far file:DIR names another folder"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(Resumed, TrainingTakesTheSettingsThatAreGivenAnew) {
  static_cast<void>(train(kept("--momentum 0.5 --steps 2")));

  const json resumed = train(kept("--resume --momentum 0.25 --steps 4"));

  EXPECT_EQ(resumed.value("steps_run", 0), 2);
  json saved;
  std::ifstream{checkpoint() + "/checkpoint.json"} >> saved;
  EXPECT_EQ(saved.value("optimizer", json{}).value("momentum", json{}).dump(), "0.25");
}

// Adam's step count, moments, learning rates and the cosine's length come from the checkpoint.
TEST_F(Resumed, TrainingKeepsItsOptimizerAndItsPlaceInTheSchedule) {
  const Arguments settings =
      "--optimizer adamw --beta1 0.8 --lr 0.002 --schedule cosine --cosine-steps 5 --warmup-steps "
      "2 --final-lr 0.0001 --weight-decay 0.02";
  const json whole = train({settings, "--steps 6"});
  static_cast<void>(train({kept(settings), "--steps 3"}));

  const json resumed = train(kept("--resume --steps 6"));

  EXPECT_EQ(hash(resumed), hash(whole));
  EXPECT_EQ(resumed.value("optimizer", json{}), whole.value("optimizer", json{"none"}));
  EXPECT_EQ(resumed.value("schedule", json{}), whole.value("schedule", json{"none"}));
}

// Without a given length, the cosine keeps the original training's length.
TEST_F(Resumed, TrainingGoesOnAfterItsCosineAtTheFinalRate) {
  static_cast<void>(train(kept("--steps 2 --schedule cosine --final-lr 0.001")));

  const test::Outcome outcome =
      run_spillway({"train --net lenet --batch 8 --json -", kept("--resume --steps 3")});

  EXPECT_EQ(summary_of(outcome).value("schedule", json{}).value("cosine_steps", 0), 2);
  EXPECT_EQ(json_lines(outcome).front().value("learning_rate", json{}).dump(), "0.001");
}

// With a learning rate of 0, step 2 stays the best evaluation, and two that are not better end the
// training.
TEST_F(Resumed, TrainingKeepsItsEvaluationsAndItsSamples) {
  const Arguments settings = "--eval-every 2 --early-stop 2 --train-samples 40 --lr 0";
  const json whole = train({settings, "--steps 20"});
  EXPECT_EQ(whole.value("steps", 0), 6);
  static_cast<void>(train(kept({settings, "--keep 1 --keep-best --steps 4"})));

  const test::Outcome resumed =
      run_spillway({"train --net lenet --batch 8 --conv-algorithm direct --json -",
                    kept("--keep 1 --resume --steps 20")});

  EXPECT_EQ(summary_of(resumed).value("steps", 0), 6);
  test::expect_parts(resumed.errors, {"ended early after step 6", "than that of step 2"});
  EXPECT_TRUE(std::filesystem::exists(checkpoint() + "/step-2.json"));
  EXPECT_FALSE(std::filesystem::exists(checkpoint() + "/step-4.json"));
  const json more = train(kept("--resume --steps 9 --early-stop 0 --eval-every 0"));
  EXPECT_EQ(more.value("steps", 0), 9);
}

TEST_F(Resumed, TrainingKeepsItsDropout) {
  const auto train_gpt = [](const Arguments& flags) {
    return hash(summary_of(run_spillway(
        {"train --net gpt:1,2,16,8 --vocabulary 300 --batch 4 --threads 1 --json -", flags})));
  };
  const std::string whole = train_gpt("--dropout 0.2 --steps 4");
  ASSERT_EQ(train_gpt(kept("--dropout 0.2 --steps 2")).size(), whole.size());
  EXPECT_EQ(train_gpt(kept("--resume --steps 4")), whole);
}

// A training is killed in the middle of a line, and resumes.
TEST_F(Resumed, TrainingGoesOnInTheSameLog) {
  const std::string log = folder_.file("log.json");
  const auto train_to = [&](const char* steps) {
    return succeed(
        {"train --net lenet --batch 8 --json", log, kept({"--resume auto --steps", steps})});
  };
  const auto lines = [&] {
    std::ifstream file{log};
    return std::count(std::istreambuf_iterator{file}, {}, '\n');
  };
  train_to("2");
  EXPECT_EQ(lines(), 3);
  std::ofstream{log, std::ios::app} << R"({"step":3,"epoch":1,"loss":1.5})"
                                    << "\n{\"step\":4,";

  train_to("4");

  EXPECT_EQ(lines(), 7);
  const std::string table = succeed({"report --csv -", log}).output;
  EXPECT_EQ(std::ranges::count(table, '\n'), 5) << table;
  EXPECT_EQ(table.find(",1.5,"), std::string::npos) << "step 3 as it ran last: " << table;
  train_to("4");
  EXPECT_EQ(lines(), 8) << "nothing was left to train";
}

TEST_F(Resumed, TrainingKeepsAPlanThatItWasGiven) {
  static_cast<void>(train(kept("--steps 2 --budget 100%")));
  static_cast<void>(train({"--checkpoint", folder_.file("other"), "--steps 1 --budget min"}));
  const auto read = [](const std::string& path) {
    json file;
    std::ifstream{path} >> file;
    return file;
  };
  const auto plan = [&](const std::string& folder) {
    const json manifest = read(folder + "/checkpoint.json");
    return folder + '/' + manifest.at("plans").at(0).at("file").get<std::string>();
  };
  const std::string other = plan(folder_.file("other"));
  ASSERT_NE(read(plan(checkpoint())), read(other));

  static_cast<void>(train(kept({"--resume --steps 3 --plan", other})));

  EXPECT_EQ(read(plan(checkpoint())), read(other));
}

// How a training goes on that is given something else than it began with.
struct Change {
  const char* flags;
  const char* words;  // empty: it goes on with the checkpoint's plan
  bool keeps_bits = true;
};

TEST_F(Resumed, TrainingGoesOnWithinAnotherBudgetAndElsewhere) {
  const Arguments settings = "--threads 1 --budget min+50% --planner capacity --memory managed";
  const json whole = train({settings, "--steps 4"});
  static_cast<void>(train({kept(settings), "--steps 2"}));
  const std::string begun = folder_.file("begun");
  std::filesystem::rename(checkpoint(), begun);
  for (const auto& [flags, words, keeps_bits] :
       {Change{"", ""}, Change{"--budget min+50%", ""}, Change{"--planner capacity", ""},
        Change{"--budget min", "made for a budget of "}, Change{"--budget 100%", "a budget of "},
        Change{"--planner joint", "made for planner capacity, not joint; "},
        Change{"--recompute off", "made for --recompute auto, not off; "},
        Change{"--state near", "made for --state auto, not near and a budget of "},
        Change{"--memory copy", "made for --memory managed, not copy; "},
        Change{"--memory resident", "made for --memory managed, not resident; "},
        Change{"--threads 2", "made for 1 thread, not 2; ", false}}) {
    std::filesystem::remove_all(checkpoint());
    std::filesystem::copy(begun, checkpoint());
    const test::Outcome outcome =
        run_spillway({"train --net lenet --batch 8 --conv-algorithm direct --json -",
                      kept("--resume --steps 4"), Arguments{flags}});
    const json resumed = summary_of(outcome);
    EXPECT_EQ(resumed.value("steps_run", 0), 2) << flags;
    if (keeps_bits) {
      EXPECT_EQ(hash(resumed), hash(whole)) << flags;
    }
    const std::string what = "warning: the checkpoint's plan was made for ";
    if (*words == '\0') {
      EXPECT_EQ(outcome.errors.find(what), std::string::npos) << flags << outcome.errors;
      EXPECT_EQ(resumed.value("budget_bytes", 0), whole.value("budget_bytes", 1)) << flags;
      EXPECT_EQ(resumed.value("planner", ""), "capacity") << flags;
      continue;
    }
    test::expect_parts(outcome.errors, {what, words, "; there is a new one, ",
                                        keeps_bits ? ", so that results stay the same bit for bit\n"
                                                   : ", but kernels that divide their work "});
  }
}

// A plan may use less of the automatic budget than another one needs.
TEST_F(Resumed, TrainingPlansAnewWithinAllOfAnAutomaticBudget) {
  const json begun = train(kept("--threads 1 --steps 2"));
  const auto go_on = [&](const char* flags) {
    return run_spillway({"train --net lenet --batch 8 --conv-algorithm direct --json -",
                         kept("--resume"), Arguments{flags}});
  };
  const test::Outcome same = go_on("--steps 4");
  EXPECT_EQ(same.errors.find("there is a new one"), std::string::npos) << same.errors;
  EXPECT_EQ(summary_of(same).value("budget_bytes", 0), begun.value("budget_bytes", 1));
  const test::Outcome other = go_on("--steps 6 --threads 2");
  test::expect_parts(other.errors, {"made for 1 thread, not 2; there is a new one"});
  EXPECT_EQ(other.errors.find("made for a budget of"), std::string::npos) << other.errors;
}

// oneDNN's older instructions stand for another processor.
TEST_F(Resumed, TrainingGoesOnOnAnotherProcessor) {
  static_cast<void>(train(kept("--steps 2 --budget min+50%")));
  const test::Outcome outcome =
      run_spillway({"train --net lenet --batch 8 --json -", kept("--resume --steps 4")},
                   {"ONEDNN_MAX_CPU_ISA=SSE41"});
  EXPECT_EQ(summary_of(outcome).value("steps_run", 0), 2);
  test::expect_parts(outcome.errors, {"made for host (", ", not host (", "; there is a new one, "});
}

TEST_F(Resumed, TrainingBeginsWithTheWeightsOfStepZero) {
  const json whole = train("--steps 2");
  static_cast<void>(train(kept("--steps 0")));
  EXPECT_TRUE(std::filesystem::exists(checkpoint() + "/step-0.safetensors"));

  const json resumed = train(kept("--resume --steps 2"));

  EXPECT_EQ(resumed.value("steps_run", 0), 2);
  EXPECT_EQ(hash(resumed), hash(whole));
}

TEST_F(Resumed, TrainingGoesOnFromTheCheckpointBeforeADamagedOneAndSaysSo) {
  const json whole = train("--steps 6");
  static_cast<void>(train(kept("--steps 4 --checkpoint-every 2")));
  const std::string damaged = checkpoint() + "/step-4.safetensors";
  std::fstream file{damaged, std::ios::in | std::ios::out | std::ios::binary};
  file.seekp(-3, std::ios::end);
  file.put('x');
  file.close();

  const test::Outcome outcome = run_spillway(
      {"train --net lenet --batch 8 --conv-algorithm direct --json -", kept("--resume --steps 6")});

  EXPECT_NE(outcome.errors.find("warning: " + damaged + " does not match its digest: tensor '"),
            std::string::npos)
      << outcome.errors;
  EXPECT_NE(outcome.errors.find("; going on from the checkpoint of step 2\n"), std::string::npos);
  EXPECT_EQ(summary_of(outcome).value("steps_run", 0), 4);
  EXPECT_EQ(hash(summary_of(outcome)), hash(whole));
}

// The same command is repeated, as a scheduler does.
class Restarted : public Resumed {
 protected:
  [[nodiscard]] json restart(const Arguments& flags = {}) const {
    return train(kept({"--checkpoint-every 2 --resume auto --steps 6", flags}));
  }
  [[nodiscard]] std::string in_folder(const std::string& name) const {
    return checkpoint() + "/" + name;
  }
  void expect_restart(int steps_run) const {
    const json summary = restart();
    EXPECT_EQ(summary.value("steps_run", -1), steps_run);
    EXPECT_EQ(hash(summary), whole_);
  }
  // Saves the state of a training that was killed after its first checkpoint.
  void save_first() const { static_cast<void>(train(kept("--steps 2"))); }

  const std::string whole_ = hash(train("--steps 6"));
};

TEST_F(Restarted, TrainingBeginsWhereNothingIsSaved) {
  expect_restart(6);  // the folder does not exist
  std::filesystem::remove_all(checkpoint());
  std::filesystem::create_directory(checkpoint());
  expect_restart(6);
  expect_restart(0);
}

// The folder's states while the first checkpoint is written: no manifest, then the step's manifest,
// then its copy.
TEST_F(Restarted, TrainingGoesOnFromAFirstCheckpointThatIsThere) {
  for (const bool has_manifest : {false, true}) {
    std::filesystem::remove_all(checkpoint());
    save_first();
    std::filesystem::remove(in_folder("checkpoint.json"));
    if (!has_manifest) std::filesystem::remove(in_folder("step-2.json"));
    expect_restart(has_manifest ? 4 : 6);
    EXPECT_EQ(run_spillway({"checkpoint verify", checkpoint()}).exit_code, 0);
  }
  std::filesystem::remove_all(checkpoint());
  save_first();
  std::filesystem::remove(in_folder("checkpoint.json"));
  EXPECT_EQ(train(kept("--resume --steps 6")).value("steps_run", 0), 4) << "as --resume alone";
}

// Initialisation rules and weight files apply only to the first start.
TEST_F(Restarted, TrainingMayBeToldHowItBegins) {
  const Arguments rule = "--init pytorch";
  const std::string whole = hash(train({rule, "--steps 6"}));
  ASSERT_NE(whole, whole_);
  static_cast<void>(train(kept({rule, "--resume auto --steps 2"})));
  EXPECT_EQ(hash(restart(rule)), whole);
}

}  // namespace
}  // namespace spillway

namespace spillway::test {
namespace {

// A far file that changes during a training, as on a failing disk.

namespace fs = std::filesystem;

/// Opens a process's far file, which has no name. Returns -1 when there is none.
int open_far_file(pid_t process, const fs::path& folder) {
  const fs::path descriptors = "/proc/" + std::to_string(process) + "/fd";
  std::error_code ended;
  for (const auto& entry : fs::directory_iterator{descriptors, ended}) {
    const std::string target = fs::read_symlink(entry.path(), ended).string();
    if (!target.starts_with(folder.string() + "/") || !target.ends_with("(deleted)")) continue;
    return open(entry.path().c_str(), O_WRONLY | O_CLOEXEC);
  }
  return -1;
}

/// Overwrites the whole file once.
void spoil(int file) {
  const std::vector<char> rubbish(1U << 20U, '\x5a');
  const off_t size = lseek(file, 0, SEEK_END);
  for (off_t at = 0; at < size; at += static_cast<off_t>(rubbish.size())) {
    const auto left = static_cast<std::size_t>(size - at);
    if (pwrite(file, rubbish.data(), std::min(rubbish.size(), left), at) <= 0) return;
  }
}

class FarDamage : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Modes, FarDamage, testing::Values("managed", "copy"),
                         [](const auto& mode) { return std::string{mode.param}; });

TEST_P(FarDamage, EndsATrainingThatGoesOnFromItsLastCheckpointWithTheSameBits) {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder.path() / "checkpoint" / "checkpoint.json";
  const Arguments training =
      "train --net lenet --batch 128 --seed 4 --json - --conv-algorithm direct";
  const Arguments kept = {"--checkpoint", checkpoint.parent_path().string(), "--memory",
                          GetParam()};
  Program program{{training, kept, "--steps 1000 --checkpoint-every 1 --planner capacity",
                   "--budget min+10% --far", "file:" + folder.path().string(),
                   "--link-bandwidth 100MB/s"}};  // keeps blocks far for long
  program.wait_for_lines(3);
  ASSERT_TRUE(fs::exists(checkpoint));
  const int file = open_far_file(program.process(), folder.path());
  ASSERT_GE(file, 0);
  // All through steps: only what is far at the moment is harmed.
  std::jthread spoiler{[file](const std::stop_token& stop) {
    while (!stop.stop_requested()) spoil(file);
  }};
  const Outcome outcome = program.finish();
  spoiler.request_stop();
  spoiler.join();
  close(file);
  EXPECT_EQ(outcome.exit_code, kFailure);
  EXPECT_NE(outcome.errors.find("spillway: far memory in " + folder.path().string() +
                                " is damaged: the 4 KiB at byte "),
            std::string::npos)
      << outcome.errors;

  const auto step = nlohmann::json::parse(std::ifstream{checkpoint}).at("step").get<int>();
  const Arguments end = {"--steps", std::to_string(step + 2)};
  const nlohmann::json resumed = summary_of(run_spillway({training, kept, end, "--resume"}));
  const nlohmann::json whole = summary_of(run_spillway({training, end, "--memory resident"}));
  EXPECT_EQ(resumed["weights_sha256"], whole["weights_sha256"]);
}

}  // namespace
}  // namespace spillway::test
