#include "um/files/input_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/files/folder.h"

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

}  // namespace
}  // namespace spillway::um
