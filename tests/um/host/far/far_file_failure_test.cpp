#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "tests/um/host/far/pages.h"
#include "um/host/far/far_file.h"

namespace spillway::um {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A disk that fails `failures` times; time passes only as the caller pauses.
struct FailingDisk {
  int reason = EIO;
  int failures = 0;
  std::size_t most = SIZE_MAX;  ///< bytes it moves in one call
  int calls = 0;
  Nanoseconds passed{0};

  [[nodiscard]] bool fails() {
    ++calls;
    errno = reason;
    return failures-- > 0;
  }
  [[nodiscard]] FarCalls as_calls() {
    return {
        .pread = [this](int file, void* to, std::size_t size,
                        off_t at) { return fails() ? -1 : pread(file, to, least(size), at); },
        .pwrite = [this](int file, const void* from, std::size_t size,
                         off_t at) { return fails() ? -1 : pwrite(file, from, least(size), at); },
        .pause = [this](Nanoseconds time) { passed += time; }};
  }
  [[nodiscard]] std::size_t least(std::size_t size) const { return std::min(size, most); }
};

class FarFileOnAFailingDisk : public testing::Test {
 protected:
  test::TemporaryFolder folder;
  FailingDisk disk;
  FarFile far{folder.path(), 64_KiB, disk.as_calls()};
  Pages page{8_KiB, 7};

  [[nodiscard]] std::string place(int byte) const {
    return "far memory in " + folder.path().string() + ", at byte " + std::to_string(byte) +
           " of its file: ";
  }
};

TEST_F(FarFileOnAFailingDisk, TriesAgainWithPauses) {
  for (const int reason : {EIO, EAGAIN, ENOMEM, EBUSY, ETIMEDOUT}) {
    disk.reason = reason;
    disk.failures = 3;
    far.write(8_KiB, page.bytes());
    disk.failures = 3;
    Pages back{8_KiB};
    far.read(8_KiB, back.bytes());
    EXPECT_TRUE(back.is_all(7));
  }
  EXPECT_EQ(disk.passed, 10 * milliseconds{1 + 2 + 4});
}

TEST_F(FarFileOnAFailingDisk, GivesUpAfterThreeSecondsAndSaysWhere) {
  disk.failures = 1'000'000;
  EXPECT_EQ(test::refusal([&] { return far.write(8_KiB, page.bytes()), 0; }),
            "cannot write " + place(8192) + "Input/output error");
  EXPECT_EQ(disk.passed, seconds{3});
  EXPECT_EQ(test::refusal([&] { return far.read(4_KiB, page.bytes()), 0; }),
            "cannot read " + place(4096) + "Input/output error");
  EXPECT_EQ(disk.passed, seconds{3}) << "moves that are queued do not wait once more each";
}

// A call that fails comes before each that moves a page; the 14 pauses that make 3 s move 14 pages.
TEST_F(FarFileOnAFailingDisk, HasThreeSecondsForAllPartsTogether) {
  FarCalls calls = disk.as_calls();
  calls.pwrite = [&](int file, const void* from, std::size_t /*size*/, off_t at) -> ssize_t {
    errno = EIO;
    return ++disk.calls % 2 == 1 ? -1 : pwrite(file, from, 4096, at);
  };
  FarFile halting{folder.path(), 64_KiB, calls};
  EXPECT_EQ(test::refusal([&] { return halting.write(0_B, Pages{64_KiB}.bytes()), 0; }),
            "cannot write " + place(14 * 4096) + "Input/output error");
  EXPECT_EQ(disk.passed, seconds{3});
}

TEST_F(FarFileOnAFailingDisk, DoesNotWaitForWhatWillNotPass) {
  for (const int reason : {ENOSPC, EDQUOT, EFBIG, EROFS}) {
    disk = {.reason = reason, .failures = 1};
    EXPECT_NE(test::refusal([&] { return far.write(0_B, page.bytes()), 0; }), "accepted");
    EXPECT_EQ(disk.calls, 1);
    EXPECT_EQ(disk.passed, seconds{0});
  }
}

TEST_F(FarFileOnAFailingDisk, GoesOnAfterAnInterruptionAndAfterAPart) {
  disk = {.reason = EINTR, .failures = 100, .most = 4096};
  far.write(0_B, page.bytes());
  disk.failures = 100;
  Pages back{8_KiB};
  far.read(0_B, back.bytes());
  EXPECT_TRUE(back.is_all(7));
  EXPECT_EQ(disk.calls, 2 * (100 + 2));
  EXPECT_EQ(disk.passed, seconds{0});
}

TEST_F(FarFileOnAFailingDisk, SaysAtWhichByteALaterPartFails) {
  disk = {.reason = ENOSPC, .most = 4096};
  int writes = 0;
  FarCalls calls = disk.as_calls();
  calls.pwrite = [&, all = calls.pwrite](int file, const void* from, std::size_t size, off_t at) {
    if (++writes == 2) disk.failures = 1;
    return all(file, from, size, at);
  };
  FarFile other{folder.path(), 64_KiB, calls};
  EXPECT_EQ(test::refusal([&] { return other.write(16_KiB, page.bytes()), 0; }),
            "cannot write " + place(16384 + 4096) + "No space left on device");
}

}  // namespace
}  // namespace spillway::um
