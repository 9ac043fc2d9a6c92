#include <gtest/gtest.h>

#include <algorithm>

#include "um/machine/available_memory.h"

namespace spillway::um {
namespace {

// A machine that has `free` bytes, and gets as many as it uses as often as it pauses, up to `most`.
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
  EXPECT_LE(machine.grown, 31_GiB);      // no more than was needed
  EXPECT_GE(machine.least_free, 1_GiB);  // half of what there was
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
