#include "um/files/replaced_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

using test::refusal;

class ReplacedFileTest : public testing::Test {
 protected:
  ReplacedFileTest() { std::ofstream{path()} << "old"; }
  [[nodiscard]] std::string path() const { return folder.file("file"); }
  // Returns the names of all other files in the folder.
  [[nodiscard]] std::vector<std::string> beside() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator{folder.path()}) {
      if (entry.path().filename() != "file") names.push_back(entry.path().filename());
    }
    return names;
  }
  [[nodiscard]] std::string content() const {
    std::ifstream file{path()};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  static void write(ReplacedFile& file, std::string_view text) {
    file.write(std::as_bytes(std::span{text}));
  }
  test::TemporaryFolder folder;
};

TEST_F(ReplacedFileTest, IsTheOldOneUntilItIsCommitted) {
  ReplacedFile file{path()};
  write(file, "ne");
  write(file, "w");
  EXPECT_EQ(content(), "old");
  file.commit();
  EXPECT_EQ(content(), "new");
  EXPECT_TRUE(beside().empty());
}

TEST_F(ReplacedFileTest, LeavesNothingWhenItIsGivenUp) {
  {
    ReplacedFile file{path()};
    write(file, "new");
    EXPECT_EQ(beside().size(), 1U);
  }
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(beside().empty());
}

TEST_F(ReplacedFileTest, TakesNothingAfterItsEnd) {
  ReplacedFile file{path()};
  file.commit();
  EXPECT_THROW(write(file, "more"), ContractError);
  EXPECT_THROW(file.commit(), ContractError);
}

TEST_F(ReplacedFileTest, TakesItsPlaceLaterThanItIsFlushed) {
  ReplacedFile file{path()};
  write(file, "new");
  EXPECT_THROW(file.take_place(), ContractError);
  file.flush();
  EXPECT_EQ(content(), "old");
  file.take_place();
  EXPECT_EQ(content(), "new");
}

// An attacker who knew the temporary name could put a link to another file there.
TEST_F(ReplacedFileTest, IsWrittenUnderANameThatNobodyCanKnow) {
  const ReplacedFile first{path()};
  const ReplacedFile second{path()};
  const std::vector<std::string> names = beside();
  ASSERT_EQ(names.size(), 2U);
  EXPECT_NE(names[0], names[1]);
  EXPECT_EQ(replaced_by(names[0]), "file");
  std::ofstream{folder.file("target")} << "precious";
  fs::create_symlink("target", path() + ".partial");
  {
    ReplacedFile third{path()};
    write(third, "new");
    third.commit();
  }
  EXPECT_EQ(fs::file_size(folder.file("target")), 8U);
}

TEST_F(ReplacedFileTest, ReplacesALinkAndNotWhatItLeadsTo) {
  fs::rename(path(), folder.file("target"));
  fs::create_symlink("target", path());
  ReplacedFile file{path()};
  write(file, "new");
  file.commit();
  EXPECT_FALSE(fs::is_symlink(path()));
  EXPECT_EQ(fs::file_size(folder.file("target")), 3U);
}

TEST_F(ReplacedFileTest, HasTheModeThatTheUmaskLeaves) {
  const mode_t before = ::umask(027);
  ReplacedFile{path()}.commit();
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

// Simulates a full disk. The program ignores the signal, too.
TEST_F(ReplacedFileTest, LeavesTheOldOneWhereItMayNotGrow) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit two{.rlim_cur = 2, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &two);
  const std::string sentence = refusal([&] {
    ReplacedFile file{path()};
    write(file, "new");
    file.commit();
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(sentence, "cannot write " + path() + ": File too large");
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(beside().empty());
}

TEST_F(ReplacedFileTest, DoesNotReplaceAFolder) {
  fs::create_directory(folder.file("in the way"));
  ReplacedFile file{folder.file("in the way")};
  EXPECT_EQ(refusal([&] { file.commit(); }).find("cannot replace "), 0U);
}

// The file belongs to the folder, wherever the folder has moved.
TEST_F(ReplacedFileTest, FollowsItsFolder) {
  const std::string moved = folder.file("moved");
  const Folder place = Folder::make(folder.file("place"));
  ReplacedFile file{place, "file"};
  write(file, "new");
  fs::rename(folder.file("place"), moved);
  fs::create_directory(folder.file("place"));
  file.commit();
  EXPECT_TRUE(fs::exists(moved + "/file"));
  EXPECT_TRUE(fs::is_empty(folder.file("place")));
}

TEST(ReplacedBy, KnowsTheNamesOfWhatWasNotFinished) {
  EXPECT_EQ(replaced_by("checkpoint.json.0123456789abcdef.partial"), "checkpoint.json");
  for (const char* name :
       {"checkpoint.json", "checkpoint.json.partial", ".0123456789abcdef.partial",
        "x.0123456789abcdeg.partial", "x0123456789abcdef.partial"}) {
    EXPECT_EQ(replaced_by(name), "") << name;
  }
}

}  // namespace
}  // namespace spillway::um
