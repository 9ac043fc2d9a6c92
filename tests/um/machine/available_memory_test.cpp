#include "um/machine/available_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "tests/temporary_folder.h"
#include "um/error.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

/// A folder like the root of a machine with 1000 KiB available.
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
  [[nodiscard]] const std::filesystem::path& root() const { return root_.path(); }
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

TEST_F(AvailableMemory, TellsThePeakOfACgroup) {
  EXPECT_EQ(peak_of_cgroup(root()), std::nullopt);
  write("proc/self/cgroup", "0::/a\n");
  EXPECT_EQ(peak_of_cgroup(root()), std::nullopt) << "not told";
  write_cgroup("/a", "max", "300000");
  write("sys/fs/cgroup/a/memory.peak", "400000\n");
  EXPECT_EQ(peak_of_cgroup(root()), Bytes{400'000});
}

TEST_F(AvailableMemory, TellsThePeakOfAContainerThatSeesOnlyItsOwnCgroup) {
  write("proc/self/cgroup", "4:memory:/a/name/from/outside\n");
  write("sys/fs/cgroup/memory/memory.max_usage_in_bytes", "400000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(peak_of_cgroup(root()), std::nullopt) << "the whole machine's";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  EXPECT_EQ(peak_of_cgroup(root()), Bytes{400'000});
}

TEST(ResidentMemory, HasWhatIsTouched) {
  const Bytes before = resident_memory();
  const Range memory = map_memory(32_MiB);
  touch_memory(memory);
  EXPECT_GE(resident_memory(), before + 31_MiB);
  unmap_memory(memory);
  EXPECT_LT(resident_memory(), before + 16_MiB);
  EXPECT_GE(peak_resident_memory(), before + 31_MiB);
}

TEST_F(AvailableMemory, IsNothingInAFullCgroup) {
  write("proc/self/cgroup", "0::/a\n");
  write_cgroup("/a", "500000", "600000");
  EXPECT_EQ(available(), 0_B);
}

// A container of 60 MB; this process already uses 4 MB.
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

// A machine with `free` bytes that grows by its used bytes at each pause, up to `most`.
struct Machine {
  Bytes free;
  Bytes most;
  Bytes taken = {};
  Bytes least_free = free;
  Bytes grown = {};
  int pauses = 0;
  bool refuses = false;

  Bytes probe(Bytes wanted) {
    return available_when_touched(wanted, {.available = [this] { return free; },
                                           .take = [this](Bytes size) { return take(size); },
                                           .pause = [this] { pause(); }});
  }

 private:
  bool take(Bytes size) {
    if (refuses) return false;
    taken += size;
    free = free - size;
    least_free = std::min(least_free, free);
    return true;
  }
  void pause() {
    ++pauses;
    const Bytes more = std::min(saturating_difference(taken, grown), most - grown);
    grown += more;
    free += more;
  }
};

TEST(GrowingMemory, IsNotTouchedWhereThereIsEnough) {
  Machine machine{.free = 8_GiB, .most = {}};
  EXPECT_EQ(machine.probe(8_GiB), 8_GiB);
  EXPECT_EQ(machine.taken, 0_B);
}

TEST(GrowingMemory, IsThereOnceItIsUsed) {
  Machine machine{.free = 2_GiB, .most = 100_GiB};
  EXPECT_GE(machine.probe(30_GiB), 30_GiB);
  EXPECT_LE(machine.grown, 31_GiB);      // no more than needed
  EXPECT_GE(machine.least_free, 1_GiB);  // half of the initial memory
}

TEST(GrowingMemory, LeavesHalfOfWhatDoesNotGrow) {
  Machine machine{.free = 2_GiB, .most = {}};
  EXPECT_EQ(machine.probe(3_GiB), 2_GiB);
  EXPECT_GE(machine.least_free, 1_GiB);
  EXPECT_GT(machine.pauses, 0);
}

TEST(GrowingMemory, TakesFourGibibytesAtMostOfWhatDoesNotGrow) {
  Machine machine{.free = 100_GiB, .most = {}};
  EXPECT_EQ(machine.probe(1000_GiB), 100_GiB);
  EXPECT_EQ(machine.taken, 4_GiB);
}

TEST(GrowingMemory, EndsWhereTheMachineDoes) {
  Machine machine{.free = 2_GiB, .most = 5_GiB};
  EXPECT_EQ(machine.probe(30_GiB), 7_GiB);
  EXPECT_GE(machine.least_free, 1_GiB);
}

TEST(GrowingMemory, EndsWhereTheSystemRefuses) {
  Machine machine{.free = 2_GiB, .most = 100_GiB, .refuses = true};
  EXPECT_EQ(machine.probe(30_GiB), 2_GiB);
}

TEST(GrowingMemory, IsNotTouchedForMoreThanAnyMachineGrowsTo) {
  Machine machine{.free = 2_GiB, .most = 1024_GiB};
  EXPECT_EQ(machine.probe(1024_GiB), 2_GiB);
  EXPECT_EQ(machine.taken, 0_B);
}

TEST(GrowingMemory, IsNotTouchedWhereNoneIsLeft) {
  Machine machine{.free = 12_B, .most = 100_GiB};
  EXPECT_EQ(machine.probe(30_GiB), 12_B);
  EXPECT_EQ(machine.taken, 0_B);
}

TEST(GrowingMemoryOfThisMachine, IsGivenBack) {
  const Bytes before = available_memory();
  EXPECT_GT(available_when_touched(before + 64_MiB), 0_B);
  EXPECT_GT(2 * available_memory(), before);
}

}  // namespace
}  // namespace spillway::um
