#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/managed/small_space.h"

// What becomes of pages whose content nobody needs, and who waits for it.

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;
using DeadPages = SmallSpace;

TEST_F(DeadPages, AreDiscardedOnTheStreamThatPopulates) {
  make(discarding());
  space->hints().populate(pages(0, 3));
  static_cast<void>(api->take_log());
  space->hints().retire(pages(0, 2));
  EXPECT_EQ(api->take_log(), Log{});
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  space->hints().discard(pages(0, 2));
  space->hints().check();  // waits for the driver's calls
  EXPECT_EQ(api->take_log(), (Log{"um upkeep: discard slab 0+2"}));
  EXPECT_EQ(space->counters().discarded_pages, 2U);
}

// What the driver is told of a page whose content is dead, and what populating it again takes.
TEST_F(DeadPages, AreToldToTheDriverOnlyWhereItMayEvictOrWhenAskedTo) {
  const auto calls = [this](const GpuOptions& gpu) {
    ManagedOptions wanted = options();
    wanted.gpu = gpu;
    make(wanted);
    space->hints().populate(pages(0, 3));
    static_cast<void>(api->take_log());
    space->hints().discard(pages(0, 3));
    space->hints().check();
    EXPECT_EQ(ledger.in_use(), 0_MiB);
    space->hints().populate(pages(0, 3));
    Log log = api->take_log();
    space.reset();
    return log;
  };
  const Log told{"um upkeep: discard slab 0+3", "um upkeep: discard and prefetch near slab 0+3",
                 "um upkeep: record", "compute: wait for um upkeep"};
  EXPECT_EQ(calls({}), Log{});
  EXPECT_EQ(calls({.oversubscribe = true}), told);
  EXPECT_EQ(calls({.discards = true}), told);
  EXPECT_EQ(calls({.oversubscribe = true, .discards = false}), Log{});
}

// A driver that takes its time over discards.
class SlowDiscards final : public RecordingApi {
 public:
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    note("discard begins");
    may_end_.get_future().wait();
    RecordingApi::discard(ranges, stream);
  }
  void let_end() { may_end_.set_value(); }

 private:
  std::promise<void> may_end_;
};

TEST_F(DeadPages, AloneWaitForTheDriversDiscard) {
  SlowDiscards own;
  CudaManagedMemory from{own, std::nullopt};
  ComputeStreams none{own};
  CudaManagedSpace made{own, from, none, nullptr, discarding(), ledger};
  const auto page = [&](std::size_t index) {
    return made.slab().subspan(index * (2_MiB).count(), (2_MiB).count());
  };
  Hints& hints = made.hints();
  hints.populate(page(0));
  hints.discard(page(0));  // returns
  own.wait_until_noted("discard begins");
  static_cast<void>(own.take_log());
  hints.populate(page(1));
  EXPECT_EQ(own.take_log(),
            (Log{"um upkeep: discard and prefetch near slab 1+1", "um upkeep: record"}));
  std::thread again{[&] { hints.populate(page(0)); }};
  while (!test::all_others_sleep()) std::this_thread::yield();
  own.let_end();
  again.join();
  EXPECT_EQ(own.take_log(),
            (Log{"um upkeep: discard slab 0+1", "um upkeep: discard and prefetch near slab 0+1",
                 "um upkeep: record"}));
}

TEST_F(DeadPages, AreDroppedBeforeTheirSpaceEnds) {
  SlowDiscards own;
  CudaManagedMemory from{own, std::nullopt};
  ComputeStreams none{own};
  std::optional<CudaManagedSpace> made;
  made.emplace(own, from, none, nullptr, discarding(), ledger);
  const Range page = made->slab().first((2_MiB).count());
  made->hints().populate(page);
  made->hints().discard(page);
  own.wait_until_noted("discard begins");
  std::thread end{[&] { made.reset(); }};
  while (!test::all_others_sleep()) std::this_thread::yield();
  own.let_end();
  end.join();
  EXPECT_EQ(own.take_log().back(), "um upkeep: discard slab 0+1");
}

}  // namespace
}  // namespace spillway::um
