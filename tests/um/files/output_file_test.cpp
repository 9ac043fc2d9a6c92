#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/files/replaced_file.h"

namespace spillway::um {
namespace {

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

}  // namespace
}  // namespace spillway::um
