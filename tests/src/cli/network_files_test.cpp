// Networks as ONNX files: export --to onnx, and train --net FILE.onnx.
// Networks that users write in files.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "src/io/onnx/onnx_model.h"
#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

class OnnxFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx_library()) GTEST_SKIP() << "built without ONNX's library";
    const std::string net = std::string{SPILLWAY_GOLDEN_FILES} + "/weights/thin-resnet.net";
    succeed(training(net, {"--steps 2 --checkpoint", file("trained")}));
    succeed(to_onnx());
  }
  static Arguments training(const Arguments& net, const Arguments& more) {
    return {"train --batch 4 --threads 1 --device host --net", net, more};
  }
  [[nodiscard]] Arguments to_onnx() const {
    return {"export", file("trained"), "--to onnx", file("net.onnx")};
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] json digests(const std::string& folder) const {
    return json::parse(std::ifstream{file(folder) + "/checkpoint.json"})
        .at("tensors")
        .at("sha256_of_each");
  }
  TemporaryFolder folder_;
};

TEST_F(OnnxFiles, BeginATrainingWithTheWeightsThatWereExported) {
  const Outcome begun =
      succeed(training(file("net.onnx"), {"--steps 0 --seed 9 --checkpoint", file("begun")}));
  expect_parts(begun.errors, {"weights of " + file("net.onnx") + ": its own"});
  const json before = digests("trained");
  const json after = digests("begun");
  EXPECT_EQ(after.at("conv1.weight"), before.at("conv1.weight"));
  EXPECT_EQ(after.at("fc.bias"), before.at("fc.bias"));
  EXPECT_EQ(after.at("bn1.running_var"), before.at("bn1.running_var"));
}

// Counts how often a file is opened, by inotify.
class Openings {
 public:
  explicit Openings(const std::string& path) {
    EXPECT_GE(inotify_add_watch(notes_, path.c_str(), IN_OPEN), 0) << path;
  }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;
  ~Openings() { close(notes_); }

  /// Returns the number since the last call.
  [[nodiscard]] std::size_t count() const {
    std::size_t openings = 0;
    alignas(inotify_event) std::array<char, 4096> bytes{};
    for (ssize_t size = read(notes_, bytes.data(), bytes.size()); size > 0;
         size = read(notes_, bytes.data(), bytes.size())) {
      openings += static_cast<std::size_t>(size) / sizeof(inotify_event);  // nameless events
    }
    return openings;
  }

 private:
  int notes_ = inotify_init1(IN_NONBLOCK);
};

TEST_F(OnnxFiles, AreReadOnce) {
  const Openings openings{file("net.onnx")};
  succeed({"nets", file("net.onnx")});
  const std::size_t once = openings.count();
  EXPECT_GE(once, 1U);
  succeed(
      training(file("net.onnx"), {"--steps 1 --eval-every 1 --confusion", file("confusion.csv")}));
  EXPECT_EQ(openings.count(), once);
}

TEST_F(OnnxFiles, DrawWeightsWhereARuleIsGiven) {
  succeed(training(file("net.onnx"), {"--steps 0 --init pytorch --checkpoint", file("drawn")}));
  EXPECT_NE(digests("drawn").at("conv1.weight"), digests("trained").at("conv1.weight"));
}

TEST_F(OnnxFiles, GetANewHeadForOtherClasses) {
  const Arguments other{"--steps 0 --classes 3 --checkpoint", file("tuned")};
  expect_refused(kFailure, training(file("net.onnx"), other), {"fc.weight", "--new-head"});
  std::filesystem::remove_all(file("tuned"));
  succeed(training(file("net.onnx"), {other, "--new-head"}));
  EXPECT_EQ(digests("tuned").at("conv1.weight"), digests("trained").at("conv1.weight"));
  EXPECT_NE(digests("tuned").at("fc.weight"), digests("trained").at("fc.weight"));
}

TEST_F(OnnxFiles, AreNetworksOfAllCommands) {
  const Outcome described = succeed({"nets", file("net.onnx")});
  EXPECT_NE(described.output.find("thin-resnet"), std::string::npos) << described.output;
  succeed({"nets", file("net.onnx"), "--dump", file("net.net")});
  succeed(training(file("net.net"), "--steps 0"));
  succeed({"plan --batch 4 --machine v100 --net", file("net.onnx")});
}

TEST_F(OnnxFiles, AreRefusedInASentence) {
  std::ofstream{file("text.onnx")} << "no network";
  expect_refused(kFailure, training(file("text.onnx"), "--steps 0"), {"text.onnx", "no ONNX file"});
  expect_refused(kFailure, training(file("none.onnx"), "--steps 0"), {"none.onnx"});
  expect_refused(kFailure, training(file("net.onnx"), "--steps 0 --zero-gamma"),
                 {"--zero-gamma", "--init"});
}

TEST_F(OnnxFiles, AreReplacedAsAWhole) {
  const json written = json_of({to_onnx(), "--json -"});
  EXPECT_EQ(written.at("network"), "thin-resnet");
  EXPECT_EQ(written.at("step"), 2);
  EXPECT_EQ(written.at("bytes"), std::filesystem::file_size(file("net.onnx")));
  expect_refused(kFailure, {"export", file("trained"), "--to onnx", file("nowhere/net.onnx")},
                 {"nowhere"});
}

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

class NetworkFile : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("my.net"); }

  // Writes a network of six classes for images of 12x12.
  void write(const std::string& hidden = "conv convolution channels=4 kernel=3") const {
    std::ofstream{path()} << "spillway-network 1\nname mine\ninput 3x12x12\nclasses 6\n\n"
                          << hidden << "\nfc linear features=classes\nloss softmax-cross-entropy\n";
  }

  [[nodiscard]] Arguments training(const Arguments& more = {}) const {
    return {"train --net", path(), "--batch 4 --steps 2 --threads 2 --json -", more};
  }

  TemporaryFolder folder_;
};

TEST_F(NetworkFile, IsTrainedByItsOwnNameAndClasses) {
  write();
  const json summary = summary_of(training("--budget min+20%"));
  EXPECT_EQ(summary.at("network"), "mine");
  EXPECT_EQ(summary.at("classes"), 6);
  EXPECT_EQ(summary.at("image"), "3x12x12");
  EXPECT_EQ(summary.at("steps_run"), 2);
}

TEST_F(NetworkFile, TakesAnotherImageAndOtherClasses) {
  write();
  const json summary = summary_of(training("--image-size 9 --classes 4"));
  EXPECT_EQ(summary.at("classes"), 4);
  EXPECT_EQ(summary.at("image"), "3x9x9");
  // 4 (3 * 9) + 4 for the convolution with output 4x7x7, and 4 (4 * 7 * 7) + 4.
  EXPECT_EQ(summary.at("parameters"), 112 + 788);
}

TEST_F(NetworkFile, OfABuiltInNetworkTrainsToTheSameBits) {
  EXPECT_EQ(succeed({"nets lenet --dump", path()}).output, "");
  const json from_file = summary_of(training());
  const json built_in = summary_of("train --net lenet --batch 4 --steps 2 --threads 2 --json -");
  EXPECT_EQ(from_file.at("network"), "lenet");
  EXPECT_EQ(from_file.at("weights_sha256"), built_in.at("weights_sha256"));
}

TEST_F(NetworkFile, IsPlannedMeasuredSweptAndListedByItsOwnName) {
  write();
  const json plan = json_of({"plan --net", path(), "--batch 4 --json -"});
  EXPECT_EQ(plan.at("network"), "mine");
  const json swept =
      json_of({"sweep --net", path(),
               "--batch 4 --budgets min --planners capacity --machines v100 --json -"});
  EXPECT_EQ(swept.at("points").at(0).at("net"), "mine");
  const json facts = json_of({"nets", path(), "--json -"}).at(0);
  EXPECT_EQ(facts.at("name"), "mine");
  EXPECT_EQ(facts.at("classes"), 6);
  EXPECT_EQ(facts.at("description"), "a network of your own");
  succeed({"profile --net", path(), "--batch 4 --out", folder_.file("profile.json")});
}

TEST_F(NetworkFile, GoesOnFromItsCheckpoint) {
  write();
  const Arguments saved = {"--checkpoint", folder_.file("saved"), "--checkpoint-every 1"};
  succeed(training(saved));
  expect_parts(content_of(folder_.file("saved/checkpoint.json")), {"mine 3x12x12, 6 classes"});
  Arguments more = training({saved, "--resume"});
  *std::ranges::find(more, "2") = "3";  // steps
  EXPECT_EQ(summary_of(more).at("steps"), 3);
}

TEST(Dump, GoesToStandardOutputUnlessAFileIsNamed) {
  const TemporaryFolder folder;
  const Arguments dump = "nets resnet18 --classes 7 --image-size 64 --dump";
  const Outcome outcome = succeed(dump);
  EXPECT_TRUE(outcome.output.starts_with("spillway-network 1\nname resnet18\n")) << outcome.output;
  expect_parts(outcome.output, {"\ninput 3x64x64\nclasses 7\n"});
  EXPECT_EQ(run_spillway({dump, "-"}).output, outcome.output);
  EXPECT_EQ(run_spillway({dump, folder.file("r.net")}).output, "");
  EXPECT_EQ(content_of(folder.file("r.net")), outcome.output);
}

TEST(Dump, HasTheAuxiliaryHeads) {
  const TemporaryFolder folder;
  const std::string file = folder.file("heads.net");
  succeed({"nets googlenet --aux-heads --dump", file});
  EXPECT_EQ(succeed({"nets", file, "--json -"}).output,
            succeed("nets googlenet --aux-heads --json -").output);
}

// Weight files with the names of other libraries: train --weights and export.

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

}  // namespace
}  // namespace spillway::test
