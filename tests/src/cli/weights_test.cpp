// Weight files with the names of other libraries: train --weights and export.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

class WeightsOfFiles : public testing::Test {
 protected:
  // A network of 2 layers, 2 heads, 16 numbers a token and 12 tokens.
  static Arguments training(const std::string& steps, const Arguments& more = {},
                            const std::string& vocabulary = "23") {
    return {"train --net gpt:2,2,16,12 --batch 4 --data synthetic --vocabulary", vocabulary,
            "--steps", steps, more};
  }
  [[nodiscard]] std::string folder() const { return files_.file("run"); }
  [[nodiscard]] std::string file() const { return files_.file("model.safetensors"); }
  [[nodiscard]] Arguments to_hf() const { return {"export", folder(), "--to hf", file()}; }

  void train_and_export() const {
    succeed(training("2", {"--checkpoint", folder()}));
    succeed(to_hf());
  }
  static std::string content_of(const std::string& path) {
    std::ifstream stream{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream{path, std::ios::binary} << bytes;
  }
  static std::string weights_of(const nlohmann::json& summary) {
    return summary.value("weights_sha256", "none");
  }

  TemporaryFolder files_;
};

TEST_F(WeightsOfFiles, AreThoseOfTheTrainingThatWroteThem) {
  const auto trained = summary_of(training("2", {"--json - --checkpoint", folder()}));
  const auto written = json_of({to_hf(), "--json -"});
  EXPECT_EQ(written.at("network"), "gpt:2,2,16,12");
  EXPECT_EQ(written.at("step"), 2);
  EXPECT_EQ(written.at("tensors"), 28);
  EXPECT_EQ(written.at("bytes"), fs::file_size(file()));

  for (const std::string& given : {file(), files_.path().string()}) {
    const Outcome again = succeed(training("0", {"--json - --seed 7 --weights", given}));

    EXPECT_EQ(weights_of(summary_of(again)), weights_of(trained));
    expect_parts(again.errors, {"weights of " + given + ": Hugging Face's GPT-2"});
  }
}

TEST_F(WeightsOfFiles, AreWhereATrainingStartsFromThatResumes) {
  train_and_export();
  const std::string second = files_.file("second");
  const Arguments flags{"--checkpoint", second};
  succeed(training("1", {"--weights", file(), flags}));
  const auto whole = summary_of(training("3", {"--json - --weights", file()}));

  const auto resumed = summary_of(training("3", {"--json - --resume", flags}));

  EXPECT_EQ(resumed.value("steps_run", 0), 2);
  EXPECT_EQ(weights_of(resumed), weights_of(whole));

  const Arguments third{"--checkpoint", files_.file("third"), "--resume auto --weights", file()};
  succeed(training("1", third));
  const auto restarted = summary_of(training("3", {"--json -", third}));
  EXPECT_EQ(restarted.value("steps_run", 0), 2);
  EXPECT_EQ(weights_of(restarted), weights_of(whole));
}

// The step is the same with any budget and memory.
TEST_F(WeightsOfFiles, AreTheSameWithinABudget) {
  train_and_export();
  const auto resident = summary_of(training("2", {"--memory resident --json - --weights", file()}));
  const auto within =
      summary_of(training("2", {"--budget min --state far --json - --weights", file()}));
  EXPECT_EQ(weights_of(within), weights_of(resident));
}

TEST_F(WeightsOfFiles, DoNotGoWithResuming) {
  expect_refused(2, training("3", {"--resume --weights x --checkpoint", folder()}),
                 {"--weights does not go with --resume"});
}

TEST_F(WeightsOfFiles, ThatDoNotFitAreRefused) {
  train_and_export();
  const std::string bad = files_.file("bad");
  const Arguments start = training("1", {"--checkpoint", files_.file("new"), "--weights"});
  const auto expect_sentence = [&](const std::vector<std::string>& words) {
    expect_refused(1, {start, bad}, words);
  };
  expect_sentence({"cannot read " + bad + ": No such file"});
  write(bad, "");
  expect_sentence({"it is empty"});
  write(bad, content_of(file()).substr(0, 1000));
  expect_sentence({bad, "its header claims"});
  write(bad, "{\"weight_map\": {}}");
  expect_sentence({bad, "it is JSON, as the index"});
  write(bad, std::string{"PK\3\4"} + std::string(100, 'x'));
  expect_sentence({bad, "torch.save()", "safetensors.torch.save_file()"});
  expect_refused(1, {start, folder()},
                 {"neither model.safetensors nor model.safetensors.index.json", "spillway export"});
  expect_refused(1, training("1", {"--weights", file()}, "30"),
                 {"transformer.wte.weight", "(23, 16)", "(30, 16)", "give --vocabulary 23"});
  expect_refused(1, {"train --net llama:1,2,1,16,24,12 --batch 4 --steps 1 --weights", file()},
                 {"is of Hugging Face's GPT-2", "Hugging Face's Llama"});
  expect_refused(1, {"train --net lenet --batch 4 --steps 1 --weights", file()},
                 {"network lenet has no names", "gpt2", "resnet"});
  EXPECT_FALSE(fs::exists(files_.file("new")));
}

// Opening a named pipe without a writer would block forever.
TEST_F(WeightsOfFiles, AreNotReadFromNamedPipes) {
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  expect_refused(1, training("1", {"--weights", file()}), {"it is no ordinary file"});
}

class Exporting : public WeightsOfFiles {};

TEST_F(Exporting, ReplacesAFileAsAWholeAndFollowsALink) {
  write(files_.file("target"), "old");
  fs::create_symlink(files_.file("target"), file());
  train_and_export();
  EXPECT_TRUE(fs::is_symlink(file()));
  EXPECT_EQ(summary_of(training("0", {"--json - --weights", files_.file("target")})).size(),
            summary_of(training("0", {"--json -"})).size());
  EXPECT_EQ(std::distance(fs::directory_iterator{files_.path()}, fs::directory_iterator{}), 3);
}

TEST_F(Exporting, LeavesWhatIsThereWhereItIsRefused) {
  succeed(training("1", {"--checkpoint", folder()}));
  write(file(), "old");
  expect_refused(1, {"export", folder(), "--to torchvision", file()},
                 {"network gpt:2,2,16,12 has no names of torchvision's", "Hugging Face's GPT-2"});
  expect_refused(1, {"export", files_.file("nowhere"), "--to hf", file()},
                 {"there is no checkpoint in", "give the folder of a train --checkpoint"});
  fs::resize_file(folder() + "/step-1.safetensors", 100);
  expect_refused(1, to_hf(), {"step-1.safetensors"});
  EXPECT_EQ(content_of(file()), "old");
}

TEST_F(Exporting, OfANetworkWithoutNamesIsRefused) {
  succeed({small_training(), "--checkpoint", folder()});
  expect_refused(
      1, to_hf(),
      {"network lenet has no names in files of other libraries", "gpt2", "have torchvision's"});
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(Exporting, WritesOnlyFilesOfTheUsers) {
  succeed(training("1", {"--checkpoint", folder()}));
  const std::string inside = folder() + "/step-1.safetensors";
  const std::string before = content_of(inside);
  const auto to = [&](const std::string& path) {
    return Arguments{"export", folder(), "--to hf", path};
  };
  expect_refused(1, to(inside), {"that is the checkpoint's folder"});
  expect_refused(1, to(folder() + "/../run/new"), {"that is the checkpoint's folder"});
  EXPECT_EQ(content_of(inside), before);
  expect_refused(1, to(files_.path().string()), {"it is no ordinary file"});
  expect_refused(1, to(files_.file("missing/file")), {"No such file or directory"});
  expect_refused(1, to("-"), {"not standard output"});
  expect_refused(1, to("/dev/null"), {"it is no ordinary file"});
}

TEST_F(Exporting, NeedsToKnowWhoseNames) {
  expect_refused(2, {"export", folder(), file()}, {"needs --to"});
  expect_refused(2, {"export", folder(), "--to keras", file()}, {"--to", "hf", "torchvision"});
  expect_refused(2, {"export", folder(), "--to hf"}, {"needs file"});
}

}  // namespace
}  // namespace spillway::test
