#include "um/machine/available_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway::um {
namespace {

/// A folder that looks like the root of a machine with 1000 KiB available.
class AvailableMemory : public testing::Test {
 protected:
  AvailableMemory() {
    write("proc/meminfo",
          "MemTotal:        4000 kB\nMemFree:          500 kB\nMemAvailable:    1000 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_.path() / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream{full} << text;
  }
  void write_cgroup(const std::string& folder, const std::string& limit, const std::string& usage) {
    write("sys/fs/cgroup" + folder + "/memory.max", limit + "\n");
    write("sys/fs/cgroup" + folder + "/memory.current", usage + "\n");
  }
  [[nodiscard]] Bytes available() const { return available_memory(root_.path()); }
  [[nodiscard]] Bytes usable() const { return usable_memory(root_.path()); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(AvailableMemory, IsWhatTheSystemHasWithoutCgroups) { EXPECT_EQ(available(), 1000_KiB); }

TEST_F(AvailableMemory, IsTheRoomInACgroupWhenThatIsLess) {
  write("proc/self/cgroup", "0::/a\n");
  write_cgroup("/a", "800000", "300000");
  EXPECT_EQ(available(), Bytes{500'000});
}

TEST_F(AvailableMemory, CountsFilePagesTheCgroupCanDrop) {
  write("proc/self/cgroup", "0::/a\n");
  write_cgroup("/a", "800000", "300000");
  write("sys/fs/cgroup/a/memory.stat", "anon 200000\ninactive_file 100000\nactive_file 5\n");
  EXPECT_EQ(available(), Bytes{600'000});  // 800000 - (300000 - 100000)
}

TEST_F(AvailableMemory, IsTheLeastRoomOfTheCgroupsAround) {
  write("proc/self/cgroup", "0::/a/b\n");
  write_cgroup("", "max", "900000");
  write_cgroup("/a", "500000", "400000");
  write_cgroup("/a/b", "max", "300000");
  EXPECT_EQ(available(), Bytes{100'000});
}

TEST_F(AvailableMemory, FindsTheLimitOfAContainerThatSeesOnlyItsOwnCgroup) {
  write("proc/self/cgroup", "0::/a/name/from/outside\n");
  write_cgroup("", "500000", "200000");
  EXPECT_EQ(available(), Bytes{300'000});
}

TEST_F(AvailableMemory, ReadsCgroupsOfVersion1) {
  write("proc/self/cgroup", "5:cpu:/c\n4:hugetlb,memory:/a\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "500000\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "200000\n");
  write("sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 50000\n");
  EXPECT_EQ(available(), Bytes{350'000});
}

TEST_F(AvailableMemory, IsNothingInAFullCgroup) {
  write("proc/self/cgroup", "0::/a\n");
  write_cgroup("/a", "500000", "600000");
  EXPECT_EQ(available(), 0_B);
}

// A container of 60 MB, in which this process has 4 MB already.
TEST_F(AvailableMemory, LeavesRoomForWhatATrainingTakesBesideNearAndFarMemory) {
  write("proc/meminfo", "MemAvailable: 4000000 kB\n");
  write("proc/self/cgroup", "0::/a\n");
  write_cgroup("/a", "60000000", "4000000");
  EXPECT_EQ(available(), Bytes{56'000'000});
  EXPECT_EQ(usable(), Bytes{56'000'000} - 32_MiB);
  write_cgroup("/a", "60000000", "50000000");
  EXPECT_EQ(usable(), 0_B);
}

TEST_F(AvailableMemory, SaysWhichFileItCannotRead) {
  write("proc/meminfo", "nothing of use\n");
  EXPECT_THROW((void)available(), Error);
}

TEST(AvailableMemoryOfThisMachine, IsSome) { EXPECT_GT(available_memory(), 1_MiB); }

}  // namespace
}  // namespace spillway::um
