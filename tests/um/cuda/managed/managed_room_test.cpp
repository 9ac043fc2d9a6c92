#include <gtest/gtest.h>

#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/error.h"

namespace spillway::um {
namespace {

TEST(ManagedRoom, IsFreeMemoryLessAMargin) {
  EXPECT_NO_THROW(expect_managed_room(1_GiB, {.free = 1536_MiB}));
  EXPECT_THROW(expect_managed_room(1_GiB, {.free = 1535_MiB}), Error);
  EXPECT_THROW(expect_managed_room(1_GiB, {.free = 1536_MiB, .taken = 1_MiB}), Error);
  EXPECT_NO_THROW(expect_managed_room(1_GiB, {.free = 0_MiB, .oversubscribe = true}));
}

TEST(ManagedRoom, KeepsItsLimitEvenWhenOversubscribed) {
  const ManagedRoom room{.free = 80_GiB, .taken = 1_GiB, .limit = 2_GiB, .oversubscribe = true};
  EXPECT_NO_THROW(expect_managed_room(1_GiB, room));
  EXPECT_THROW(expect_managed_room(1025_MiB, room), Error);
}

}  // namespace
}  // namespace spillway::um
