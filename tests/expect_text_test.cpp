#include "tests/expect_text.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

class ExpectText : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* now = std::getenv("SPILLWAY_UPDATE")) before_ = now;
    unsetenv("SPILLWAY_UPDATE");
    path = folder_.file("text.txt");
  }
  void TearDown() override {
    unsetenv("SPILLWAY_UPDATE");
    if (!before_.empty()) setenv("SPILLWAY_UPDATE", before_.c_str(), 1);
  }

  void write(const std::string& text) { std::ofstream{path} << text; }
  [[nodiscard]] std::string text() const {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  // The body of EXPECT_NONFATAL_FAILURE sees no local variables or members.
  static inline std::string path;
  TemporaryFolder folder_;

 private:
  std::string before_;
};

TEST_F(ExpectText, AcceptsTheTextOfTheFile) {
  write("one\ntwo\n");
  expect_text(path, "one\ntwo\n");
}

TEST_F(ExpectText, ShowsTheFirstLinesThatDiffer) {
  write("one\ntwo\nthree\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "one\n2\nthree\n"),
                          "from line 2 on\n- two\n- three\n+ 2\n+ three\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "one\ntwo\n"), "from line 3 on\n- three\nSPILL");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "one\ntwo\nthree"), "only the last newline differs");
  EXPECT_EQ(text(), "one\ntwo\nthree\n");
}

TEST_F(ExpectText, FailsWithoutAFile) {
  EXPECT_NONFATAL_FAILURE(expect_text(path, "one\n"), "is missing");
  EXPECT_NONFATAL_FAILURE(expect_text(path, ""), "is missing");
}

TEST_F(ExpectText, WritesTheFileWhenAsked) {
  setenv("SPILLWAY_UPDATE", "1", 1);
  expect_text(path, "new\n");
  EXPECT_EQ(text(), "new\n");
  expect_text(path, "newer\n");
  EXPECT_EQ(text(), "newer\n");
}

TEST_F(ExpectText, WritesNothingWhenAskedOtherwise) {
  setenv("SPILLWAY_UPDATE", "0", 1);
  write("old\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "new\n"), "- old\n+ new\n");
  EXPECT_EQ(text(), "old\n");
}

}  // namespace
}  // namespace spillway::test
