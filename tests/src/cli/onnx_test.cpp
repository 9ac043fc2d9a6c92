// Networks as ONNX files: export --to onnx, and train --net FILE.onnx.

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "src/io/onnx/onnx_model.h"
#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
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

// How often a file is opened, of which the kernel takes notes.
class Openings {
 public:
  explicit Openings(const std::string& path) {
    EXPECT_GE(inotify_add_watch(notes_, path.c_str(), IN_OPEN), 0) << path;
  }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;
  ~Openings() { close(notes_); }

  /// Since this was last asked.
  [[nodiscard]] std::size_t count() const {
    std::size_t openings = 0;
    alignas(inotify_event) std::array<char, 4096> bytes{};
    for (ssize_t size = read(notes_, bytes.data(), bytes.size()); size > 0;
         size = read(notes_, bytes.data(), bytes.size())) {
      openings += static_cast<std::size_t>(size) / sizeof(inotify_event);  // without names
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

}  // namespace
}  // namespace spillway::test
