#include "um/threads/back_off.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace spillway::um {
namespace {

using std::chrono::milliseconds;

TEST(BackOff, DoublesItsPausesUpToTheLongestAndTheTotal) {
  BackOff waits{{.first = milliseconds{1}, .longest = milliseconds{4}, .total = milliseconds{13}}};
  std::vector<Nanoseconds> pauses;
  while (const auto pause = waits.next()) pauses.push_back(*pause);
  EXPECT_EQ(pauses, (std::vector<Nanoseconds>{milliseconds{1}, milliseconds{2}, milliseconds{4},
                                              milliseconds{4}, milliseconds{2}}));
  EXPECT_EQ(waits.next(), std::nullopt);
}

TEST(BackOff, WithoutTimeAllowsNoOtherTry) {
  BackOff waits{{.first = milliseconds{1}, .longest = milliseconds{4}, .total = milliseconds{0}}};
  EXPECT_EQ(waits.next(), std::nullopt);
}

}  // namespace
}  // namespace spillway::um
