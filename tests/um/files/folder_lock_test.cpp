#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/files/folder.h"

namespace spillway::um {
namespace {

using test::refusal;

class FolderLockTest : public testing::Test {
 protected:
  [[nodiscard]] std::string refused() const {
    return refusal([&] { return FolderLock{folder}; });
  }
  test::TemporaryFolder temporary;
  Folder folder{temporary.path()};
  std::string path = temporary.file(FolderLock::kFile);
};

TEST_F(FolderLockTest, IsHeldByOneAtATime) {
  std::optional<FolderLock> lock{FolderLock{folder}};
  const std::string begin = "the folder " + temporary.path().string() + " is in use by process " +
                            std::to_string(::getpid()) + " on ";
  EXPECT_EQ(refused().find(begin), 0U) << refused();
  EXPECT_NE(refused().find(" UTC; wait until that ends"), std::string::npos) << refused();
  lock.reset();
  EXPECT_EQ(refused(), "accepted");
}

TEST_F(FolderLockTest, LeavesNothing) {
  {
    const FolderLock lock{folder};
    EXPECT_FALSE(std::filesystem::is_empty(temporary.path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST_F(FolderLockTest, MayBeHandedOn) {
  FolderLock lock{folder};
  const FolderLock other{std::move(lock)};
  EXPECT_NE(refused(), "accepted");
}

// The lock ends even when the process cannot clean up.
TEST_F(FolderLockTest, EndsWithItsProcess) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock{folder};
    [[maybe_unused]] const ssize_t count = ::write(pipe[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_NE(refused().find("process " + std::to_string(child) + " on "), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(refused(), "accepted");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(FolderLockTest, LeavesAFileOfTheUserAsItIs) {
  std::ofstream{path} << "precious";
  EXPECT_NE(refused().find(" is not one of Spillway; move it"), std::string::npos) << refused();
  EXPECT_EQ(std::filesystem::file_size(path), 8U);
  std::filesystem::remove(path);
  std::ofstream{temporary.file("target")};
  std::filesystem::create_hard_link(temporary.file("target"), path);
  EXPECT_NE(refused(), "accepted");
  std::filesystem::remove(path);
  {
    const FolderLock lock{folder};
    std::filesystem::remove(path);
    std::ofstream{path} << "precious";
  }
  EXPECT_EQ(std::filesystem::file_size(path), 8U);
}

// Leftovers of a killed process or a power cut.
TEST_F(FolderLockTest, TakesTheFileThatAnotherLeft) {
  for (const std::string& left :
       {std::string{}, std::string(30, '\0'), std::string{"process 12 on a machine\n"}}) {
    std::ofstream{path} << left;
    EXPECT_EQ(refused(), "accepted");
  }
}

TEST_F(FolderLockTest, FollowsNoLinkAndWaitsForNoPipe) {
  std::ofstream{temporary.file("target")} << "precious";
  std::filesystem::create_symlink("target", path);
  EXPECT_EQ(refused().find("cannot write " + path), 0U) << refused();
  EXPECT_EQ(std::filesystem::file_size(temporary.file("target")), 8U);
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refused(), "cannot write " + path + ": it is no ordinary file");
}

}  // namespace
}  // namespace spillway::um
