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

TEST_F(ExpectText, AcceptsTheTextOfTheSection) {
  write("=== a\none\n=== b\n=== c d\none\n\ntwo\n=== e\nno newline ends the file");
  expect_text(path, "a", "one\n");
  expect_text(path, "c d", "one\n\ntwo\n");
  expect_text(path, "e", "no newline ends the file\n");
  expect_only_sections(path, {"a", "b", "c d", "e"});
}

TEST_F(ExpectText, ShowsTheFirstLinesThatDiffer) {
  const std::string before = "=== a\none\n=== b\none\ntwo\nthree\n=== c\nfour\n";
  write(before);
  EXPECT_NONFATAL_FAILURE(expect_text(path, "b", "one\n2\nthree\n"),
                          ", b differs from line 2 on\n- two\n- three\n+ 2\n+ three\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "b", "one\ntwo\n"), "from line 3 on\n- three\nSPILL");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "a", "one\ntwo\n"), "from line 2 on\n+ two\nSPILL");
  EXPECT_EQ(text(), before);
}

TEST_F(ExpectText, ShowsThePlaceThatDiffersInALongLine) {
  static const std::string line(1000, 'x');
  write("=== a\n" + line + "1" + line + "\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "a", line + "2" + line + "\n"),
                          "- " + line.substr(0, 60) + "1" + line.substr(0, 239) + " ...\n+ " +
                              line.substr(0, 60) + "2" + line.substr(0, 239) + " ...\nSPILL");
}

TEST_F(ExpectText, FailsWithoutASection) {
  EXPECT_NONFATAL_FAILURE(expect_text(path, "a", "one\n"), ", a is missing");
  write("=== b\none\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "a", "one\n"), ", a is missing");
}

TEST_F(ExpectText, FailsForATextThatNoSectionCanHold) {
  EXPECT_FATAL_FAILURE(expect_text(path, "a", "one"), "no newline ends one");
  EXPECT_FATAL_FAILURE(expect_text(path, "a", ""), "no newline ends");
  EXPECT_FATAL_FAILURE(expect_text(path, "a", "=== b\n"), "begins a section");
  EXPECT_FATAL_FAILURE(expect_text(path, "a", "one\n=== b\n"), "begins a section");
}

TEST_F(ExpectText, FailsForASectionThatNoTestAsksFor) {
  write("one\n=== a\none\n=== c\none\n");
  EXPECT_NONFATAL_FAILURE(expect_only_sections(path, {"", "a", "b"}), "section \"c\"");
  EXPECT_NONFATAL_FAILURE(expect_only_sections(path, {"a", "c"}), "section \"\"");
}

TEST_F(ExpectText, WritesOneSectionWhenAsked) {
  setenv("SPILLWAY_UPDATE", "1", 1);
  expect_text(path, "b", "new\n");
  EXPECT_EQ(text(), "=== b\nnew\n");
  expect_text(path, "a", "one\n");
  expect_text(path, "c", "two\n");
  expect_text(path, "b", "newer\n");
  EXPECT_EQ(text(), "=== a\none\n=== b\nnewer\n=== c\ntwo\n");
  expect_only_sections(path, {"a", "c"});
  EXPECT_EQ(text(), "=== a\none\n=== c\ntwo\n");
}

TEST_F(ExpectText, WritesNothingWhenAskedOtherwise) {
  setenv("SPILLWAY_UPDATE", "0", 1);
  write("=== a\nold\n");
  EXPECT_NONFATAL_FAILURE(expect_text(path, "a", "new\n"), "- old\n+ new\n");
  EXPECT_NONFATAL_FAILURE(expect_only_sections(path, {}), "section \"a\"");
  EXPECT_EQ(text(), "=== a\nold\n");
}

}  // namespace
}  // namespace spillway::test
