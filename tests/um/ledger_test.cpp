#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "um/error.h"
#include "um/memory.h"

namespace spillway::um {
namespace {

TEST(Ledger, RemembersItsPeak) {
  Ledger ledger{100_B};
  ledger.charge(60_B);
  ledger.release(50_B);
  ledger.charge(20_B);
  EXPECT_EQ(ledger.in_use(), 30_B);
  EXPECT_EQ(ledger.peak(), 60_B);
}

TEST(Ledger, ForgetsItsPeakWhenTold) {
  Ledger ledger{100_B};
  ledger.charge(60_B);
  ledger.release(50_B);
  ledger.reset_peak();
  EXPECT_EQ(ledger.peak(), 10_B);  // what is still in use
  ledger.charge(20_B);
  EXPECT_EQ(ledger.peak(), 30_B);
}

TEST(Ledger, RefusesTheByteTooMuch) {
  Ledger ledger{100_B};
  ledger.charge(100_B);
  EXPECT_FALSE(ledger.try_charge(1_B));
  EXPECT_THROW(ledger.charge(1_B), OutOfMemory);
  EXPECT_EQ(ledger.in_use(), 100_B);
}

TEST(Ledger, NeverExceedsItsLimitFromManyThreads) {
  Ledger ledger{10_B};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        if (ledger.try_charge(3_B)) ledger.release(3_B);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.in_use(), 0_B);
  EXPECT_LE(ledger.peak(), 10_B);
}

class NoMemory final : public Memory {
 public:
  std::byte* allocate(Bytes /*size*/) override { throw OutOfMemory{"none"}; }
  void free(std::byte* /*address*/, Bytes /*size*/) noexcept override {}
};

TEST(LimitedMemory, CountsNothingWhenTheUpstreamFails) {
  NoMemory none;
  Ledger ledger{100_B};
  LimitedMemory limited{none, ledger};
  EXPECT_THROW(Block(limited, 10_B), OutOfMemory);
  EXPECT_EQ(ledger.in_use(), 0_B);
}

}  // namespace
}  // namespace spillway::um
