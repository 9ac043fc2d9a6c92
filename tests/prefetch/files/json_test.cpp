#include "prefetch/files/json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::prefetch {
namespace {

using test::refusal;

const JsonFile& sample() {
  static const JsonFile file{
      R"({"runs": [{"task": "a"}, 7], "half": 0.5, "big": 300, "minus": -1, "yes": true, "zero": 0})",
      "plan.json"};
  return file;
}

TEST(JsonView, ReadsWhatIsThere) {
  const JsonView root = sample().root();
  EXPECT_EQ(root.at("runs").size(), 2U);
  EXPECT_EQ(root.at("runs").at(0).at("task").string(), "a");
  EXPECT_EQ(root.at("big").integer(300), 300U);
  EXPECT_EQ(root.at("half").number(), 0.5);
  EXPECT_TRUE(root.at("yes").boolean());
  EXPECT_TRUE(root.has("minus"));
  EXPECT_FALSE(root.has("plus"));
}

TEST(JsonView, EveryComplaintNamesThePlace) {
  const JsonView root = sample().root();
  const JsonView runs = root.at("runs");
  const auto said = [](const auto& action) { return refusal(action); };
  EXPECT_EQ(said([&] { return root.at("plus"); }), "plan.json: plus is missing");
  EXPECT_EQ(said([&] { return runs.at(0).at("after"); }), "plan.json: runs[0].after is missing");
  EXPECT_EQ(said([&] { return runs.at(1).has("x"); }), "plan.json: runs[1] is no object");
  EXPECT_EQ(said([&] { return runs.at(2); }), "plan.json: runs has only 2 elements");
  EXPECT_EQ(said([&] { return root.at("big").size(); }), "plan.json: big is no array");
  EXPECT_EQ(said([&] { return root.at("big").string(); }), "plan.json: big is no string");
  EXPECT_EQ(said([&] { return root.at("big").boolean(); }),
            "plan.json: big is neither true nor false");
  EXPECT_EQ(said([&] { return root.at("yes").number(); }), "plan.json: yes is no number");
}

TEST(JsonView, RefusesNumbersOutOfRange) {
  const JsonView root = sample().root();
  const auto said = [](const auto& action) { return refusal(action); };
  EXPECT_EQ(said([&] { return root.at("minus").number(); }),
            "plan.json: minus is negative or too large");
  EXPECT_EQ(said([&] { return root.at("zero").positive_number(); }), "plan.json: zero is zero");
  EXPECT_EQ(said([&] { return root.at("minus").integer(); }),
            "plan.json: minus is no whole number from 0 up");
  EXPECT_EQ(said([&] { return root.at("half").integer(); }),
            "plan.json: half is no whole number from 0 up");
  EXPECT_EQ(said([&] { return root.at("big").integer(299); }), "plan.json: big is larger than 299");
}

TEST(JsonFile, RefusesWhatIsNoJson) {
  const auto parse = [](const char* text) {
    return refusal([&] { return JsonFile{text, "x.json"}; });
  };
  EXPECT_EQ(parse("{\"a\": }"), "x.json: not JSON, at byte 7");
  EXPECT_EQ(parse("").substr(0, 17), "x.json: not JSON,");
  EXPECT_EQ(parse("{\"a\": 1e999}"), "x.json: holds a number that is too large");
}

TEST(JsonFile, RefusesAFileThatCannotBeRead) {
  EXPECT_EQ(refusal([] { return JsonFile{std::string{"/nowhere/plan.json"}}; }),
            "cannot read /nowhere/plan.json: No such file or directory");
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(refusal([&] { return JsonFile{folder}; }).substr(0, 11), "cannot read");
}

TEST(JsonFile, ChecksFormatAndVersion) {
  const auto check = [](const char* text) {
    return refusal([&] {
      JsonFile{text, "p"}.expect_format("spillway-plan", 1);
      return 0;
    });
  };
  EXPECT_EQ(check(R"({"format": "spillway-plan", "version": 1})"), "accepted");
  EXPECT_EQ(check(R"({"version": 1})"), "p: format is missing");
  EXPECT_EQ(check(R"({"format": "other", "version": 1})"),
            "p: format is 'other', not 'spillway-plan'");
  EXPECT_EQ(check(R"({"format": "spillway-plan", "version": 2})"),
            "p: version is 2; this program reads version 1");
  EXPECT_EQ(check("[]"), "p: is no object");
}

TEST(WriteJson, WritesWhatJsonFileReadsAndSaysWhenItCannot) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("a.json");
  write_json({{"a", 1}}, path);
  EXPECT_EQ(JsonFile{path}.root().at("a").integer(), 1U);
  write_json({{"folder", "f\xFFr"}}, path);  // names of files may be no UTF-8
  EXPECT_EQ(JsonFile{path}.root().at("folder").string(), "f\uFFFDr");
  const auto nowhere = [] {
    write_json(1, "/nowhere/a");
    return 0;
  };
  EXPECT_EQ(refusal(nowhere), "cannot write /nowhere/a: No such file or directory");
}

TEST(AsUtf8, ReplacesWhatIsNone) {
  EXPECT_EQ(as_utf8({{"a", {"b\xFFz", "\xC3\xA9"}}}),
            (nlohmann::json{{"a", {"b\xEF\xBF\xBDz", "\xC3\xA9"}}}));
  EXPECT_EQ(as_utf8(7), 7);
}

}  // namespace
}  // namespace spillway::prefetch
