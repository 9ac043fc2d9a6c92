#include "um/host/managed/uffd_move.h"

#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "um/error.h"
#include "um/host/managed/memfd_segv.h"

namespace spillway::um {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned kCopy = 0x03;  // userfaultfd request numbers
constexpr unsigned kMove = 0x05;

/// A kernel that refuses a request for some time. Time passes only in the caller's pauses.
class RefusingKernel {
 public:
  [[nodiscard]] UffdCalls calls() {
    return {.ioctl = [this](int descriptor, unsigned long request,
                            void* argument) { return call(descriptor, request, argument); },
            .pause = [this](Nanoseconds time) { passed_ += time; }};
  }
  void refuse(int reason, Nanoseconds time, unsigned request = kMove) {
    refused_ = request;
    reason_ = reason;
    until_ = passed_ + time;
  }
  [[nodiscard]] Nanoseconds passed() const { return passed_; }

 private:
  int call(int descriptor, unsigned long request, void* argument) const {
    if (_IOC_NR(request) != refused_ || passed_ >= until_) {
      return ioctl(descriptor, request, argument);
    }
    errno = reason_;
    return -1;
  }

  Nanoseconds passed_{0};
  Nanoseconds until_{0};
  int reason_ = 0;
  unsigned refused_ = kMove;
};

/// One page of managed memory, moved by a RefusingKernel.
class UffdMoveOfARefusingKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = probe_uffd_move()) GTEST_SKIP() << *reason;
  }
  [[nodiscard]] UffdMove mapper() {
    return UffdMove{{.page = 4_KiB, .pages = 1, .slots = 1}, kernel.calls()};
  }
  RefusingKernel kernel;
};

TEST_F(UffdMoveOfARefusingKernel, WaitsWhileItSaysTryAgain) {
  for (const int reason : {EAGAIN, EBUSY}) {
    UffdMove moves = mapper();
    moves.slot(0)[5] = std::byte{7};
    const Nanoseconds before = kernel.passed();
    kernel.refuse(reason, milliseconds{50});
    moves.map(0, 0);
    EXPECT_EQ(moves.region()[5], std::byte{7});
    EXPECT_GE(kernel.passed() - before, milliseconds{50});
    EXPECT_LE(kernel.passed() - before, milliseconds{70});  // the longest pause is 10 ms
  }
}

// The kernel returns EAGAIN while the program's mremap() waits for its event to be read.
TEST_F(UffdMoveOfARefusingKernel, WaitsWithAHoleWhileItSaysTryAgain) {
  UffdMove moves = mapper();
  for (const bool is_touched : {true, false}) {
    moves.slot(0)[5] = std::byte{7};
    moves.map(0, 0);
    ASSERT_EQ(madvise(moves.region().data(), moves.region().size(), MADV_DONTNEED), 0);
    const Nanoseconds before = kernel.passed();
    kernel.refuse(EAGAIN, milliseconds{50}, kCopy);
    if (is_touched) {
      EXPECT_TRUE(moves.mend(0));
      EXPECT_EQ(moves.region()[5], std::byte{0});
      EXPECT_FALSE(moves.mend(0));  // the page is complete now
    }
    moves.unmap(0, 0);
    EXPECT_EQ(moves.slot(0)[5], std::byte{0});
    EXPECT_GE(kernel.passed() - before, milliseconds{50});
  }
}

TEST_F(UffdMoveOfARefusingKernel, EndsTheProcessAfterTenSecondsWithAHoleAndSaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto mend_never = [this] {
    UffdMove moves = mapper();
    moves.map(0, 0);
    madvise(moves.region().data(), moves.region().size(), MADV_DONTNEED);
    kernel.refuse(EAGAIN, seconds{3600}, kCopy);
    static_cast<void>(moves.mend(0));
  };
  EXPECT_DEATH(mend_never(),
               "spillway: the kernel refuses to fill a page of managed memory: EAGAIN, Resource "
               "temporarily unavailable; this has lasted 10 s; try paging by memfd\n");
}

TEST_F(UffdMoveOfARefusingKernel, EndsTheProcessAfterTenSecondsAndSaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto move_never = [this] {
    UffdMove moves = mapper();
    kernel.refuse(EAGAIN, seconds{3600});
    moves.map(0, 0);
  };
  EXPECT_DEATH(move_never(),
               "spillway: the kernel refuses to move a page of managed memory: EAGAIN, Resource "
               "temporarily unavailable; this has lasted 10 s; try paging by memfd\n");
}

TEST_F(UffdMoveOfARefusingKernel, DoesNotWaitForWhatWillNotPass) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto move_without_memory = [this] {
    UffdMove moves = mapper();
    kernel.refuse(ENOMEM, milliseconds{1});
    moves.map(0, 0);
  };
  EXPECT_DEATH(move_without_memory(),
               "spillway: the kernel refuses to move a page of managed memory: ENOMEM, Cannot "
               "allocate memory; try paging by memfd\n");
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

/// Prevents the start of threads with the default stack size.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t attributes{};
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &before_);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << 60U);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    pthread_attr_t attributes{};
    pthread_getattr_default_np(&attributes);
    pthread_attr_setstacksize(&attributes, before_);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }

 private:
  std::size_t before_ = 0;
};

TEST(RemapEvents, LeaveNoFileOpenWhereNoThreadStarts) {
  const std::ptrdiff_t before = open_files();
  {
    const NoThreads none;
    EXPECT_THROW(RemapEvents{0}, std::exception);
  }
  EXPECT_EQ(open_files(), before);
}

/// A kernel that moves the whole request but reports less, like Linux 6.18.
class MiscountingKernel {
 public:
  explicit MiscountingKernel(std::int64_t counted) : counted_{counted} {}

  [[nodiscard]] UffdCalls calls() {
    return {.ioctl = [this](int descriptor, unsigned long request, void* argument) {
      const int result = ioctl(descriptor, request, argument);
      if (_IOC_NR(request) != kMove || result != 0 || !miscounts) return result;
      miscounts = false;
      // The fields of uffdio_move in linux/userfaultfd.h: dst, src, len, mode, move.
      static_cast<std::int64_t*>(argument)[4] = counted_;
      errno = counted_ > 0 ? EAGAIN : EEXIST;
      return -1;
    }};
  }

  bool miscounts = false;  // applies to the next move

 private:
  std::int64_t counted_;  // a negative errno if it reports none
};

TEST(UffdMoveOfAMiscountingKernel, GoesOnBehindWhatHasMoved) {
  if (const auto reason = probe_uffd_move()) GTEST_SKIP() << *reason;
  constexpr std::size_t kLarge = (64_KiB).count();
  for (const std::int64_t counted :
       {std::int64_t{4096}, std::int64_t{61440}, std::int64_t{-EEXIST}}) {
    MiscountingKernel kernel{counted};
    UffdMove moves{{.page = Bytes{kLarge}, .pages = 2, .slots = 1}, kernel.calls()};
    std::ranges::fill(moves.slot(0), std::byte{7});
    kernel.miscounts = true;
    moves.map(1, 0);
    EXPECT_EQ(std::ranges::count(moves.region().subspan(kLarge, kLarge), std::byte{7}),
              std::ptrdiff_t{kLarge});
    kernel.miscounts = true;
    moves.unmap(1, 0);
    EXPECT_EQ(std::ranges::count(moves.slot(0), std::byte{7}), std::ptrdiff_t{kLarge});
  }
}

TEST(UffdMoveOfAMiscountingKernel, EndsTheProcessWhereSomethingElseIsInTheWay) {
  if (const auto reason = probe_uffd_move()) GTEST_SKIP() << *reason;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto move_over_another = [] {
    UffdMove moves{{.page = 64_KiB, .pages = 1, .slots = 2}};
    moves.map(0, 0);
    moves.map(0, 1);
  };
  EXPECT_DEATH(move_over_another(), "EEXIST, File exists; try paging by memfd");
}

TEST_F(UffdMoveOfARefusingKernel, IsNotUsedWhereTheTrialOfItIsRefused) {
  kernel.refuse(EPERM, milliseconds{1});
  EXPECT_THROW((void)mapper(), Error);
}

std::size_t mappings_of_this_process() {
  std::ifstream file{"/proc/self/maps"};
  std::string line;
  std::size_t lines = 0;
  while (std::getline(file, line)) ++lines;
  return lines;
}

// Every second of 2000 pages is near in turn, 100 at a time. Each near page is a mapping, and so is
// the gap behind it. The 900 pages that have left are joined with their neighbours.
TEST(MemfdSegv, NeedsTwoMappingsForEachNearPage) {
  constexpr PageIndex kNear = 100;
  MemfdSegv mapper{{.page = 4_KiB, .pages = 2000, .slots = kNear}};
  const std::size_t before = mappings_of_this_process();
  for (PageIndex i = 0; i < 1000; ++i) {
    if (i >= kNear) mapper.unmap(2 * (i - kNear), i % kNear);
    mapper.map(2 * i, i % kNear);
  }
  const std::size_t others = 10;  // mappings that the test itself may have got meanwhile
  EXPECT_LE(mappings_of_this_process(), before + std::size_t{2} * kNear + others);
}

}  // namespace
}  // namespace spillway::um
