#include "src/files/replaced_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway {
namespace {

using test::refusal;

class ReplacedFileTest : public testing::Test {
 protected:
  ReplacedFileTest() { std::ofstream{path()} << "old"; }
  [[nodiscard]] std::string path() const { return folder.file("file"); }
  [[nodiscard]] std::string partial() const { return path() + ".partial"; }
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
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(ReplacedFileTest, LeavesNothingWhenItIsGivenUp) {
  {
    ReplacedFile file{path()};
    write(file, "new");
    EXPECT_TRUE(std::filesystem::exists(partial()));
  }
  EXPECT_EQ(content(), "old");
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(ReplacedFileTest, TakesNothingAfterItsEnd) {
  ReplacedFile file{path()};
  file.commit();
  EXPECT_THROW(write(file, "more"), um::ContractError);
  EXPECT_THROW(file.commit(), um::ContractError);
}

// /dev/full is a disk without room.
TEST_F(ReplacedFileTest, LeavesTheOldOneOnAFullDisk) {
  std::filesystem::create_symlink("/dev/full", partial());
  EXPECT_EQ(refusal([&] {
              ReplacedFile file{path()};
              write(file, "new");
              file.commit();
            }),
            "cannot write " + partial() + ": No space left on device");
  EXPECT_EQ(content(), "old");
  EXPECT_FALSE(std::filesystem::is_symlink(partial()));
}

TEST_F(ReplacedFileTest, DoesNotReplaceAFolder) {
  std::filesystem::create_directory(folder.file("in the way"));
  ReplacedFile file{folder.file("in the way")};
  EXPECT_EQ(refusal([&] { file.commit(); }).find("cannot rename "), 0U);
}

}  // namespace
}  // namespace spillway
