#include "um/host/managed/managed_region.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "um/error.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_table.h"
#include "um/host/managed/uffd_move.h"
#include "um/machine/available_memory.h"

namespace spillway::um {
namespace {

ManagedOptions options(std::uint64_t pages, std::uint64_t near_pages, Bytes page) {
  return {.size = pages * page, .near = near_pages * page, .page = page};
}

TEST(ManagedRegion, SaysHowItPages) {
  Ledger ledger{1_GiB};
  ManagedOptions wanted = options(4, 2, 2_MiB);
  wanted.paging = Paging::kMemfdSegv;
  EXPECT_EQ(make_managed_region(wanted, ledger)->description(), "memfd_segv, 2 MiB pages, far RAM");
  wanted = options(4, 2, 64_KiB);
  EXPECT_EQ(
      make_managed_region(wanted, ledger)->description(),
      std::string{probe_uffd_move() ? "memfd_segv" : "uffd_move"} + ", 64 KiB pages, far RAM");
}

TEST(ManagedRegion, SaysWhereItsFarFileIs) {
  const test::TemporaryFolder folder;
  Ledger ledger{1_GiB};
  ManagedOptions wanted = options(4, 2, 64_KiB);
  wanted.far.file = folder.path();
  const std::string description = make_managed_region(wanted, ledger)->description();
  EXPECT_NE(description.find(", 64 KiB pages, far file in " + folder.path().string() + ", "),
            std::string::npos)
      << description;
}

TEST(ManagedRegion, HasASlabOfWholePages) {
  Ledger ledger{1_GiB};
  const auto region = make_managed_region(options(4, 2, 2_MiB), ledger);
  EXPECT_EQ(region->slab().size(), (8_MiB).count());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region->slab().data()) % (2_MiB).count(), 0U);
}

TEST(ManagedRegion, RefusesSizesThatAreNoPages) {
  Ledger ledger{1_GiB};
  ManagedOptions uneven = options(4, 2, 4_KiB);
  uneven.size = 10'000_B;
  EXPECT_THROW(static_cast<void>(make_managed_region(uneven, ledger)), ContractError);
  EXPECT_THROW(static_cast<void>(make_managed_region(options(4, 2, 12_KiB), ledger)),
               ContractError);
  EXPECT_THROW(static_cast<void>(make_managed_region(options(4, 2, 4_MiB), ledger)), ContractError);
}

TEST(ManagedRegion, RefusesNearMemoryThatHoldsNoTwoPages) {
  Ledger ledger{1_GiB};
  EXPECT_THROW(static_cast<void>(make_managed_region(options(4, 1, 2_MiB), ledger)), Error);
  EXPECT_NO_THROW(static_cast<void>(make_managed_region(options(1, 1, 2_MiB), ledger)));
}

TEST(ManagedRegion, RefusesNearMemoryThatTheMachineDoesNotHave) {
  Ledger ledger{1_GiB};
  ManagedOptions huge = options(1U << 21U, 1U << 21U, 2_MiB);  // 4 TiB
  EXPECT_THROW(static_cast<void>(make_managed_region(huge, ledger)), OutOfMemory);
}

// Near and far memory of 80 % of the available memory each: both do not fit, even if another
// process frees memory meanwhile.
TEST(ManagedRegion, RefusesNearAndFarMemoryThatTheMachineDoesNotHaveTogether) {
  const Bytes size = round_down(Bytes{available_memory().count() / 5 * 4}, 2_MiB);
  const std::uint64_t pages = size / 2_MiB;
  Ledger ledger{size};
  try {
    static_cast<void>(make_managed_region(options(pages, pages, 2_MiB), ledger));
    FAIL() << "more fits than there is";
  } catch (const OutOfMemory& error) {
    const std::string both = "cannot take " + to_string(size) + " of near memory and put " +
                             to_string(size) + " of far memory in RAM: ";
    EXPECT_EQ(std::string{error.what()}.find(both), 0U) << error.what();
  }
}

TEST(ManagedRegion, FarMemoryIsAsLargeAsTheSpace) {
  Ledger ledger{1_GiB};
  auto small = make_far_store({}, 4_KiB);
  EXPECT_THROW(
      static_cast<void>(make_managed_region(options(4, 2, 4_KiB), ledger, std::move(small))),
      ContractError);
}

TEST(ManagedRegion, SeveralLiveSideBySide) {
  Ledger ledger{1_GiB};
  const auto first = make_managed_region(options(4, 2, 4_KiB), ledger);
  const auto second = make_managed_region(options(4, 2, 64_KiB), ledger);
  std::fill(first->slab().begin(), first->slab().end(), std::byte{1});
  std::fill(second->slab().begin(), second->slab().end(), std::byte{2});
  const auto holds = [](Range slab, std::byte value) {
    return std::all_of(slab.begin(), slab.end(), [&](std::byte byte) { return byte == value; });
  };
  EXPECT_TRUE(holds(first->slab(), std::byte{1}));
  EXPECT_TRUE(holds(second->slab(), std::byte{2}));
}

TEST(ManagedRegion, PagesStillMoveAfterAFork) {
  Ledger ledger{1_GiB};
  const auto region = make_managed_region(options(8, 2, 64_KiB), ledger);
  std::fill(region->slab().begin(), region->slab().end(), std::byte{1});
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  std::fill(region->slab().begin(), region->slab().end(), std::byte{2});
  EXPECT_EQ(std::count(region->slab().begin(), region->slab().end(), std::byte{2}), 8 << 16);
}

/// Makes the system refuse userfaultfd from now on, like many containers.
void forbid_userfaultfd() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(ManagedRegion, SaysWhatWorksWhereUserfaultfdIsForbidden) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ask = [] {
    forbid_userfaultfd();
    Ledger ledger{1_GiB};
    ManagedOptions wanted = options(4, 2, 64_KiB);
    std::cerr << make_managed_region(wanted, ledger)->description() << "; ";
    wanted.paging = Paging::kUffdMove;
    try {
      static_cast<void>(make_managed_region(wanted, ledger));
    } catch (const Error& error) {
      std::cerr << error.what() << '\n';
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(
      ask(), testing::ExitedWithCode(0),
      "memfd_segv, 64 KiB pages, far RAM; paging by uffd_move is not available: .*Operation not "
      "permitted; use --paging memfd");
}

TEST(ManagedRegion, WorkersOfOpenMpFaultPagesIn) {
  Ledger ledger{1_GiB};
  const auto region = make_managed_region(options(16, 4, 64_KiB), ledger);
  const std::span words{reinterpret_cast<std::uint32_t*>(region->slab().data()),
                        region->slab().size() / 4};
#pragma omp parallel for num_threads(4)
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i);
  std::uint64_t sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (const std::uint32_t word : words) sum += word;
  EXPECT_EQ(sum, words.size() * (words.size() - 1) / 2);
  // The first loop touches 16 new pages; the second finds at most 4 of them near.
  EXPECT_GE(region->counters().faults, 16U + 12U);
}

/// Four pages of 4096 bytes.
class PageGridTest : public testing::Test {
 protected:
  [[nodiscard]] Range range(std::size_t begin, std::size_t end) {
    return Range{memory}.subspan(begin, end - begin);
  }
  static void expect_span(PageSpan span, PageIndex begin, PageIndex end) {
    EXPECT_EQ(span.begin, begin);
    EXPECT_EQ(span.end, end);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(16'384);
  PageGrid grid{memory, 4_KiB};
};

TEST_F(PageGridTest, TouchesEveryPageOfWhichARangeHasAByte) {
  expect_span(grid.touched(range(0, 4096)), 0, 1);
  expect_span(grid.touched(range(4095, 4097)), 0, 2);
  expect_span(grid.touched(range(5000, 5001)), 1, 2);
  expect_span(grid.touched(range(0, 16'384)), 0, 4);
}

TEST_F(PageGridTest, CoversOnlyWholePages) {
  expect_span(grid.covered(range(4096, 8192)), 1, 2);
  expect_span(grid.covered(range(1, 12'287)), 1, 2);
  const PageSpan none = grid.covered(range(5000, 5001));
  EXPECT_EQ(none.begin, none.end);
}

TEST_F(PageGridTest, HasNoPagesForNoBytes) {
  expect_span(grid.touched({}), 0, 0);
  expect_span(grid.whole({}), 0, 0);
}

TEST_F(PageGridTest, RefusesPartsOfPagesAndForeignAddresses) {
  EXPECT_THROW(static_cast<void>(grid.whole(range(0, 5000))), ContractError);
  EXPECT_THROW(static_cast<void>(grid.whole(range(1, 4096))), ContractError);
  std::vector<std::byte> foreign(4096);
  EXPECT_THROW(static_cast<void>(grid.touched(foreign)), ContractError);
}

TEST_F(PageGridTest, OnlyAWholePageIsOverwritten) {
  const Use use{.range = range(0, 6000), .access = Access::kWrite};
  EXPECT_TRUE(PageAccess::of(use, grid, 0).overwrites);
  EXPECT_TRUE(PageAccess::of(use, grid, 1).writes);
  EXPECT_FALSE(PageAccess::of(use, grid, 1).overwrites);
}

TEST(EvictionOrder, StartsEmpty) { EXPECT_EQ(EvictionOrder{4}.first(), std::nullopt); }

TEST(EvictionOrder, GivesTheOldestFirst) {
  EvictionOrder order{4};
  for (const PageIndex page : {2U, 0U, 3U}) order.append(page, Advice::kNone);
  EXPECT_EQ(order.first(), 2U);
  order.remove(2);
  EXPECT_EQ(order.first(), 0U);
}

TEST(EvictionOrder, APageLeavesFromTheMiddle) {
  EvictionOrder order{4};
  for (const PageIndex page : {2U, 0U, 3U}) order.append(page, Advice::kReadMostly);
  order.remove(0);
  order.remove(2);
  EXPECT_EQ(order.first(), 3U);
  order.remove(3);
  EXPECT_EQ(order.first(), std::nullopt);
}

TEST(EvictionOrder, AdviceGoesBeforeAge) {
  EvictionOrder order{3};
  order.append(0, Advice::kPreferNear);
  order.append(1, Advice::kNone);
  order.append(2, Advice::kPreferFar);
  for (const PageIndex page : {2U, 1U, 0U}) {
    EXPECT_EQ(order.first(), page);
    order.remove(page);
  }
}

TEST(NearPool, GivesEachSlotOnceAndChargesIt) {
  Ledger ledger{1_MiB};
  NearPool pool{3, 64_KiB, ledger};
  std::set<SlotIndex> taken;
  for (int i = 0; i < 3; ++i) taken.insert(pool.take().value());
  EXPECT_EQ(taken, (std::set<SlotIndex>{0, 1, 2}));
  EXPECT_EQ(pool.take(), std::nullopt);
  EXPECT_EQ(ledger.in_use(), 192_KiB);
}

TEST(NearPool, SaysNoWhenTheLedgerIsFull) {
  Ledger ledger{128_KiB};
  NearPool pool{3, 64_KiB, ledger};
  ledger.charge(64_KiB);  // by another user of the ledger
  const auto slot = pool.take();
  ASSERT_TRUE(slot);
  EXPECT_EQ(pool.take(), std::nullopt);
  pool.give(*slot);
  EXPECT_EQ(ledger.in_use(), 64_KiB);
  EXPECT_TRUE(pool.take());
}

TEST(NearPool, ChargesNothingForWhatIsSetAside) {
  Ledger ledger{128_KiB};
  NearPool pool{2, 64_KiB, ledger};
  const SlotIndex kept = pool.take().value();
  pool.set_aside();
  EXPECT_EQ(ledger.in_use(), Bytes{});
  EXPECT_NE(pool.take().value(), kept);
  EXPECT_EQ(pool.take(), std::nullopt);  // the other one is set aside
  ledger.charge(64_KiB);                 // by another user of the ledger
  EXPECT_FALSE(pool.take_back());
  ledger.release(64_KiB);
  EXPECT_TRUE(pool.take_back());
  pool.set_aside();
  pool.give_aside(kept);
  EXPECT_EQ(pool.take(), kept);
}

TEST(NearPool, ReleasesWhatIsTakenWhenItEnds) {
  Ledger ledger{1_MiB};
  {
    NearPool pool{3, 64_KiB, ledger};
    ASSERT_TRUE(pool.take());
    ASSERT_TRUE(pool.take());
    pool.set_aside();  // and was released then
  }
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

}  // namespace
}  // namespace spillway::um
