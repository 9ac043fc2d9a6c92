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
#include <span>
#include <string>
#include <utility>

#include "tests/temporary_folder.h"
#include "um/error.h"
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

}  // namespace
}  // namespace spillway::um
