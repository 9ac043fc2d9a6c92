#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/error.h"
#include "um/files/folder.h"
#include "um/files/input_file.h"
#include "um/files/replaced_file.h"

namespace spillway::um {
namespace {

using test::refusal;

// Opening a named pipe without a writer would block and hang this test.
TEST(InputFile, IsNoPipeDeviceSocketOrFolder) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string socket_path = folder.file("socket");
  ASSERT_LT(socket_path.size(), sizeof(address.sun_path));
  std::ranges::copy(socket_path, std::begin(address.sun_path));
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  for (const std::string& path :
       {folder.file("pipe"), std::string{"/dev/zero"}, socket_path, folder.path().string()}) {
    EXPECT_EQ(refusal([&] { return InputFile{path}; }),
              "cannot read " + path + ": it is no ordinary file");
  }
  ::close(socket);
}

// The system would open the path before the zero byte.
TEST(InputFile, HasNoZeroByteInItsName) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("file");
  std::ofstream{path} << "hello";
  EXPECT_EQ(refusal([&] { return InputFile{path + '\0' + ".json"}; }),
            "cannot read " + path + "...: a zero byte comes next, which no file has in its name");
}

TEST(InputFile, IsInAFolderByItsNameAlone) {
  for (const char* const name : {"a", "..a", ".a", "a b", "a.safetensors"}) {
    EXPECT_TRUE(is_file_name(name)) << name;
  }
  for (const char* const other : {"", ".", "..", "a/b", "/a", "../a", "a/"}) {
    EXPECT_FALSE(is_file_name(other)) << other;
  }
  EXPECT_FALSE(is_file_name({"a\0b", 3}));
}

TEST(InputFile, HasALargestText) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("file");
  std::ofstream{path} << "hello";
  EXPECT_EQ(InputFile{path}.text(5), "hello");
  EXPECT_EQ(refusal([&] { return InputFile{path}.text(4); }), path + " is larger than 4 B");
  std::ofstream{path} << std::string(3 << 20U, 'x');
  EXPECT_EQ(InputFile{path}.text(4 << 20U).size(), 3U << 20U);
}

// The system reports its size as 0.
TEST(InputFile, SaysWhereItEndsTooEarly) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("short");
  std::ofstream{path} << "hello";
  std::array<std::byte, 6> bytes{};
  EXPECT_EQ(refusal([&] { InputFile{path}.read(2, bytes); }),
            path + " ends at byte 5 and goes on no further; copy or download it again");
}

TEST(InputFile, HasTheTextThatTheSystemMakesUp) {
  EXPECT_NE(InputFile{"/proc/self/status"}.text(1 << 20U).find("Name:"), std::string::npos);
}

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(WriteOutput, ReplacesAFileAsAWhole) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("file");
  std::ofstream{path} << "the older and longer text";
  std::ifstream reader{path};
  write_output(path, "new");
  EXPECT_EQ(content_of(path), "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>{reader}, {}), "the older and longer text")
      << "for whoever reads it";
}

TEST(WriteOutput, GoesWhereALinkLeads) {
  const test::TemporaryFolder folder;
  fs::create_symlink("target", folder.file("link"));
  for (const char* text : {"first", "second"}) {
    write_output(folder.file("link"), text);
    EXPECT_TRUE(fs::is_symlink(folder.file("link")));
    EXPECT_EQ(content_of(folder.file("target")), text);
  }
}

TEST(WriteOutput, IsWrittenIntoADevice) {
  write_output("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(test::refusal([] { write_output("/dev/full", "text"); }),
            "cannot write /dev/full: No space left on device");
}

// A shell passes >(jq) as such a link, which leads to no path.
TEST(WriteOutput, IsWrittenIntoAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  write_output("/proc/self/fd/" + std::to_string(ends[1]), "text");
  std::array<char, 8> read{};
  EXPECT_EQ(::read(ends[0], read.data(), read.size()), 4);
  EXPECT_STREQ(read.data(), "text");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(WriteOutput, NamesAFolderThatIsNotThere) {
  EXPECT_EQ(test::refusal([] { write_output("/nowhere/x", "text"); }),
            "cannot write /nowhere/x: No such file or directory");
}

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
