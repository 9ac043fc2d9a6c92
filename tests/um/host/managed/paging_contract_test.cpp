// Built once per mechanism, which SPILLWAY_PAGING selects.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/um/managed_contract.h"
#include "um/host/far/far_store.h"

namespace spillway::um {
namespace {

// Threads that increment their own words in random pages, with far more pages than near memory.
// The end shows lost updates, torn pages and too many near pages.
class ManagedSpaceStress : public ManagedSpaceContract {
 protected:
  static constexpr std::size_t kPages = 32;
  static constexpr std::size_t kDyingPages = 6;  // behind the kPages others
  static constexpr std::size_t kThreads = 4;
  static constexpr int kRounds = 250;

  using Counts = std::vector<std::vector<std::uint64_t>>;  // per thread and page

  struct Memory {
    ManagedSpace& space;
    std::size_t page;

    [[nodiscard]] Range bytes(std::size_t index, std::size_t count = 1) const {
      return space.slab().subspan(index * page, count * page);
    }
    // One word per 512 bytes suffices to notice a lost part of a page.
    [[nodiscard]] volatile std::uint64_t& word(std::size_t index, std::size_t thread) const {
      const std::size_t line = (index * 7 + thread * 13) % (page / 512) * 512;
      return *reinterpret_cast<volatile std::uint64_t*>(bytes(index).data() + line + thread * 8);
    }
  };

  static void increment(const Memory& memory, std::size_t thread, bool declares,
                        std::vector<std::uint64_t>& counts) {
    std::mt19937 random{static_cast<unsigned>(thread)};
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t index = random() % kPages;
      const Use use{.range = memory.bytes(index), .access = Access::kReadWrite};
      if (declares) memory.space.hints().begin_use({&use, 1});
      volatile std::uint64_t& word = memory.word(index, thread);
      word = word + 1;
      if (declares) memory.space.hints().end_use({&use, 1});
      ++counts[index];
    }
  }

  // Gives hints until the workers are done.
  static void disturb(const Memory& memory, bool prefetches, const std::atomic<bool>& is_done) {
    std::mt19937 random{99};
    while (!is_done) {
      const Range range = memory.space.slab().subspan(random() % (kPages - 4) * memory.page,
                                                      (1 + random() % 4) * memory.page);
      const MemoryTier tier =
          prefetches && random() % 2 == 0 ? MemoryTier::kNear : MemoryTier::kFar;
      std::promise<void> moved;
      memory.space.hints().prefetch(range, tier,
                                    [&](const std::exception_ptr&) { moved.set_value(); });
      moved.get_future().wait();
    }
  }

  // Acts like a planned step on blocks that die, on its own pages behind the others, until the
  // workers are done. Returns the number of words with wrong content.
  static std::uint64_t live_and_die(const Memory& memory, const std::atomic<bool>& is_done) {
    std::mt19937 random{77};
    std::uint64_t wrong = 0;
    for (std::uint64_t round = 1; !is_done; ++round) {
      const std::size_t first = kPages + random() % (kDyingPages - 1);
      const Range range = memory.bytes(first, 2);
      if (random() % 4 > 0) memory.space.hints().populate(range);
      const Use use{.range = range, .access = Access::kWrite};
      memory.space.hints().begin_use({&use, 1});
      for (const std::size_t index : {first, first + 1}) memory.word(index, 0) = round;
      memory.space.hints().end_use({&use, 1});
      if (random() % 4 == 0) {  // otherwise nothing moves it before it is read
        memory.space.hints().prefetch(range, MemoryTier::kFar, [](const std::exception_ptr&) {});
      }
      const Use reading{.range = range, .access = Access::kRead};
      memory.space.hints().begin_use({&reading, 1});
      for (const std::size_t index : {first, first + 1}) wrong += memory.word(index, 0) != round;
      memory.space.hints().end_use({&reading, 1});
      memory.space.hints().discard(range);
    }
    return wrong;
  }

  static Counts hammer(const Memory& memory, bool declares, bool prefetches, bool dies) {
    Counts counts(kThreads, std::vector<std::uint64_t>(kPages));
    std::atomic<bool> is_done = false;
    std::thread disturber{[&] { disturb(memory, prefetches, is_done); }};
    std::uint64_t wrong = 0;
    std::thread mortal{[&] { wrong = dies ? live_and_die(memory, is_done) : 0; }};
    std::vector<std::thread> workers;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      workers.emplace_back([&, thread] { increment(memory, thread, declares, counts[thread]); });
    }
    for (std::thread& worker : workers) worker.join();
    is_done = true;
    disturber.join();
    mortal.join();
    EXPECT_EQ(wrong, 0U);
    return counts;
  }

  static std::size_t mapped_pages(const Memory& memory) {
    std::size_t mapped = 0;
    for (std::size_t index = 0; index < kPages + kDyingPages; ++index) {
      unsigned char first = 0;
      EXPECT_EQ(mincore(memory.bytes(index).data(), 4096, &first), 0);
      mapped += first & 1U;
    }
    return mapped;
  }

  static void expect_exact(const ManagedOptions& options, bool declares, bool prefetches,
                           bool dies = false) {
    Ledger ledger{options.near};
    const auto region = make_managed_region(options, ledger);
    const Memory memory{.space = *region, .page = options.page.count()};
    const Counts counts = hammer(memory, declares, prefetches, dies);
    EXPECT_LE(ledger.peak(), options.near);
    EXPECT_LE(mapped_pages(memory), options.near / options.page);
    EXPECT_GT(region->counters().faults, 0U);
    EXPECT_GT(region->counters().bytes_offloaded, Bytes{});
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      for (std::size_t index = 0; index < kPages; ++index) {
        EXPECT_EQ(memory.word(index, thread), counts[thread][index])
            << "page " << index << ", thread " << thread;
      }
    }
  }
};

TEST_P(ManagedSpaceStress, LosesNoDeclaredUpdateBesideMovesBothWays) {
  // 6 of 32 pages are near (19 %). Each thread may hold one, so there is always one to evict.
  expect_exact(options(kPages + kDyingPages, 6), /*declares=*/true, /*prefetches=*/true);
}

TEST_P(ManagedSpaceStress, LosesNoUpdateBesidePagesThatDie) {
  expect_exact(options(kPages + kDyingPages, 10), /*declares=*/true, /*prefetches=*/true,
               /*dies=*/true);
}

TEST_P(ManagedSpaceStress, LosesNoUpdateOutsideUsesBesideOffloads) {
  expect_exact(options(kPages + kDyingPages, 2), /*declares=*/false, /*prefetches=*/false);  // 6 %
}

TEST_P(ManagedSpaceStress, LosesNoUpdateOnAFile) {
  const test::TemporaryFolder folder;
  ManagedOptions on_disk = options(kPages + kDyingPages, 8);
  on_disk.far.file = folder.path() / "far";
  expect_exact(on_disk, /*declares=*/true, /*prefetches=*/true);
}

constexpr Paging kPaging = Paging::SPILLWAY_PAGING;
const auto kWays = testing::Values(PagingWay{.paging = kPaging, .page = 4_KiB},
                                   PagingWay{.paging = kPaging, .page = 64_KiB},
                                   PagingWay{.paging = kPaging, .page = 2_MiB});

INSTANTIATE_TEST_SUITE_P(Paging, ManagedSpaceContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Paging, ManagedFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Paging, ManagedFaultFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Paging, ManagedSpaceStress, kWays, name_of);

}  // namespace
}  // namespace spillway::um
