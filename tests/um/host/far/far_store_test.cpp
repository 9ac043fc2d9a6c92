#include "um/host/far/far_store.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/error.h"
#include "um/host/far/far_file.h"
#include "um/host/far/link.h"
#include "um/machine/mapping.h"
#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

// Page-aligned bytes.
class Pages {
 public:
  explicit Pages(Bytes size, int value = 0) : bytes_{map_memory(size)} {
    std::memset(bytes_.data(), value, bytes_.size());
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { unmap_memory(bytes_); }
  [[nodiscard]] Range bytes() const { return bytes_; }
  [[nodiscard]] bool is_all(int value) const {
    return std::all_of(bytes_.begin(), bytes_.end(),
                       [&](std::byte b) { return b == static_cast<std::byte>(value); });
  }

 private:
  Range bytes_;
};

std::string sentence_of(const std::function<void()>& failing) {
  try {
    failing();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

enum class Kind { kRam, kFile };

// Gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(Kind kind, std::ostream* out) { *out << (kind == Kind::kRam ? "Ram" : "File"); }

/// The contract of every far store.
class FarStoreContract : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<FarStore> store(Bytes size) {
    return make_far_store({.file = GetParam() == Kind::kRam ? "" : folder_.path().string()}, size);
  }

 private:
  test::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(FarStores, FarStoreContract, testing::Values(Kind::kRam, Kind::kFile),
                         [](const auto& kind) {
                           return kind.param == Kind::kRam ? "Ram" : "File";
                         });

TEST_P(FarStoreContract, GivesBackWhatWasWrittenAtEachOffset) {
  const auto far = store(8_MiB);
  far->write(0_B, Pages{2_MiB, 1}.bytes());
  far->write(2_MiB, Pages{4_KiB, 2}.bytes());
  far->write(6_MiB, Pages{2_MiB, 3}.bytes());  // the last bytes
  Pages big{2_MiB};
  Pages small{4_KiB};
  far->read(0_B, big.bytes());
  EXPECT_TRUE(big.is_all(1));
  far->read(2_MiB, small.bytes());
  EXPECT_TRUE(small.is_all(2));
  far->read(6_MiB, big.bytes());
  EXPECT_TRUE(big.is_all(3));
}

TEST_P(FarStoreContract, KeepsTheLastWrite) {
  const auto far = store(64_KiB);
  far->write(0_B, Pages{64_KiB, 1}.bytes());
  far->write(8_KiB, Pages{4_KiB, 2}.bytes());
  Pages page{4_KiB};
  far->read(8_KiB, page.bytes());
  EXPECT_TRUE(page.is_all(2));
  far->read(12_KiB, page.bytes());
  EXPECT_TRUE(page.is_all(1));
}

TEST_P(FarStoreContract, MovesSeparateRangesFromManyThreads) {
  const auto far = store(4_MiB);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&far, t] {
      const int value = static_cast<int>(t) + 1;
      const Pages mine{1_MiB, value};
      far->write(t * 1_MiB, mine.bytes());
      std::memset(mine.bytes().data(), 0, mine.bytes().size());
      far->read(t * 1_MiB, mine.bytes());
      EXPECT_TRUE(mine.is_all(value));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(FarStoreContract, RefusesAccessBeyondItsEnd) {
  const auto far = store(8_KiB);
  const Pages pages{8_KiB};
  EXPECT_THROW(far->read(4_KiB, pages.bytes()), ContractError);
  EXPECT_THROW(far->write(12_KiB, pages.bytes()), ContractError);
}

TEST_P(FarStoreContract, RefusesWhatIsNoWholePage) {
  const auto far = store(8_KiB);
  const Pages pages{8_KiB};
  EXPECT_THROW(far->read(Bytes{512}, pages.bytes().first(4096)), ContractError);
  EXPECT_THROW(far->read(0_B, pages.bytes().first(512)), ContractError);
  EXPECT_THROW(far->write(0_B, pages.bytes().subspan(512, 4096)), ContractError);
}

TEST_P(FarStoreContract, MayBeEmpty) {
  const auto far = store(0_B);
  far->read(0_B, {});
  far->write(0_B, {});
  EXPECT_EQ(far->size(), 0_B);
}

TEST_P(FarStoreContract, TellsNeedAndRoomWhenItDoesNotFit) {
  const std::string sentence = sentence_of([&] { (void)store(1024 * 1024_GiB); });
  EXPECT_EQ(sentence.find("cannot put 1024 TiB of far memory in "), 0U) << sentence;
  EXPECT_NE(sentence.find(" with --far file:PATH"), std::string::npos) << sentence;
}

TEST(FarFile, HasNoNameWhileItIsInUse) {
  const test::TemporaryFolder folder;
  const auto in_folder = make_far_store({.file = folder.path()}, 4_KiB);
  const auto named = make_far_store({.file = folder.path() / "far"}, 4_KiB);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FarFolder, IsTheFirstOnADiskWithRoom) {
  const test::TemporaryFolder folder;
  struct statfs disk {};
  ASSERT_EQ(statfs(folder.path().c_str(), &disk), 0);
  if (disk.f_type == TMPFS_MAGIC) GTEST_SKIP() << folder.path() << " is in RAM";
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.path().c_str(), 1);
  EXPECT_EQ(find_far_folder(1_MiB), folder.path());
  EXPECT_NE(test::refusal([] {
              return find_far_folder(Bytes{1ULL << 60U});
            }).find(folder.path().string()),
            std::string::npos);
  setenv("TMPDIR", "/dev/shm", 1);
  EXPECT_NE(find_far_folder(1_MiB), "/dev/shm") << "which is in RAM";
  setenv("TMPDIR", folder.file("missing").c_str(), 1);
  EXPECT_NE(find_far_folder(1_MiB), folder.file("missing"));
  kept.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

TEST(FarFile, TakesAllItsRoomNow) {
  const test::TemporaryFolder folder;
  const UnnamedFile file{folder.path(), 4_MiB};
  struct stat info {};
  ASSERT_EQ(fstat(file.descriptor(), &info), 0);
  EXPECT_GE(Bytes{static_cast<std::uint64_t>(info.st_blocks) * 512}, 4_MiB);
}

TEST(FarFile, NamesItsFolderWhenTheSystemRefusesAReadOrAWrite) {
  const test::TemporaryFolder folder;
  const auto far = make_far_store({.file = folder.path()}, 4_KiB);
  const Pages page{4_KiB};
  ASSERT_EQ(mprotect(page.bytes().data(), page.bytes().size(), PROT_NONE), 0);
  EXPECT_EQ(sentence_of([&] { far->read(0_B, page.bytes()); }),
            "cannot read far memory in " + folder.path().string() +
                ", at byte 0 of its file: Bad address");
  EXPECT_EQ(sentence_of([&] { far->write(0_B, page.bytes()); }),
            "cannot write far memory in " + folder.path().string() +
                ", at byte 0 of its file: Bad address");
}

TEST(FarFile, SaysWhereItIs) {
  const test::TemporaryFolder folder;
  const std::string description =
      make_far_store({.file = folder.path() / "far"}, 4_KiB)->description();
  EXPECT_EQ(description.find("file in " + folder.path().string() + ", "), 0U) << description;
}

TEST(FarFile, HasChecksumsUnlessTheyAreNotWanted) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(make_far_store({.file = folder.path()}, 4_KiB)->description().ends_with("checksums"));
  EXPECT_FALSE(make_far_store({.file = folder.path(), .checksums = false}, 4_KiB)
                   ->description()
                   .ends_with("checksums"));
}

/// Far memory that returns a damaged byte at `at_` for the next `reads_` reads.
class RottenFar final : public FarStore {
 public:
  explicit RottenFar(Bytes size) : content_(size.count()) {}

  void spoil(Bytes at, int reads) {
    at_ = at;
    reads_ = reads;
  }
  void read(Bytes offset, std::span<std::byte> to) override {
    std::copy_n(content_.data() + offset.count(), to.size(), to.data());
    if (reads_ <= 0 || at_ < offset || at_ >= offset + Bytes{to.size()}) return;
    --reads_;
    to[(at_ - offset).count()] ^= std::byte{1};
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    std::copy_n(from.data(), from.size(), content_.data() + offset.count());
  }
  [[nodiscard]] Bytes size() const override { return Bytes{content_.size()}; }
  [[nodiscard]] std::string description() const override { return "rotten"; }

 private:
  std::vector<std::byte> content_;
  Bytes at_;
  int reads_ = 0;
};

class CheckedFarTest : public testing::Test {
 protected:
  explicit CheckedFarTest(std::unique_ptr<RottenFar> far = std::make_unique<RottenFar>(kSize))
      : disk{*far}, checked{std::move(far), "/scratch"} {}

  static constexpr Bytes kSize = 1_MiB;
  RottenFar& disk;
  CheckedFar checked;
};

TEST_F(CheckedFarTest, GivesBackWhatWasWrittenInPiecesOfAnySize) {
  checked.write(0_B, Pages{512_KiB, 1}.bytes());
  checked.write(64_KiB, Pages{4_KiB, 2}.bytes());
  Pages all{512_KiB};
  checked.read(0_B, all.bytes());
  EXPECT_EQ(all.bytes()[(64_KiB).count()], std::byte{2});
  EXPECT_EQ(all.bytes()[(68_KiB).count()], std::byte{1});
}

TEST_F(CheckedFarTest, FindsOneBitInAnyPart) {
  Pages pages{128_KiB, 5};
  checked.write(256_KiB, pages.bytes());
  for (std::uint64_t part = 0; part < 32; ++part) {
    const Bytes at = 256_KiB + part * 4_KiB;
    disk.spoil(at + Bytes{4095}, 2);
    EXPECT_EQ(test::refusal([&] { return checked.read(256_KiB, pages.bytes()), 0; }),
              "far memory in /scratch is damaged: the 4 KiB at byte " + std::to_string(at.count()) +
                  " of its file are not what was written there; do not trust that disk");
  }
}

TEST_F(CheckedFarTest, ReadsOnceMoreWhatWasDamagedOnItsWay) {
  Pages page{4_KiB, 5};
  checked.write(0_B, page.bytes());
  disk.spoil(7_B, 1);
  checked.read(0_B, page.bytes());
  EXPECT_TRUE(page.is_all(5));
}

TEST_F(CheckedFarTest, DoesNotCheckWhatWasNeverWritten) {
  Pages page{4_KiB, 5};
  disk.spoil(7_B, 2);
  EXPECT_NO_THROW(checked.read(0_B, page.bytes()));
}

TEST_F(CheckedFarTest, KnowsAPageOfZeros) {
  Pages page{4_KiB};
  checked.write(0_B, page.bytes());
  disk.spoil(7_B, 2);
  EXPECT_THROW(checked.read(0_B, page.bytes()), Error);
}

TEST_F(CheckedFarTest, SaysThatItChecks) {
  EXPECT_EQ(checked.description(), "rotten, with checksums");
}

TEST(CheckedFarOfNothing, MayBeEmpty) {
  CheckedFar checked{std::make_unique<RottenFar>(0_B), "/scratch"};
  checked.write(0_B, {});
  checked.read(0_B, {});
  EXPECT_EQ(checked.size(), 0_B);
}

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A disk that fails `failures` times; time passes only in the caller's pauses.
struct FailingDisk {
  int reason = EIO;
  int failures = 0;
  std::size_t most = SIZE_MAX;  ///< bytes moved per call
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

// A failed call precedes each call that moves a page; the 14 pauses within 3 s move 14 pages.
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

TEST(Link, QueuesTransfersBehindEachOther) {
  // 1000 bytes at 1000 B/s with 1 s latency take 2 s.
  Link link{{.bandwidth = Bandwidth{1000}, .latency = seconds{1}}};
  const auto before = Link::Clock::now();
  const auto first = link.reserve(1000_B);
  const auto after = Link::Clock::now();
  const auto second = link.reserve(1000_B);
  const auto third = link.reserve(500_B);
  EXPECT_GE(first, before + seconds{2});
  EXPECT_LE(first, after + seconds{2});
  EXPECT_EQ(second - first, seconds{2});
  EXPECT_EQ(third - second, milliseconds{1500});
}

TEST(Link, StartsNowWhenItHasBeenIdle) {
  Link link{{.bandwidth = Bandwidth{1e9}}};
  sleep_until(link.reserve(1000_B));  // 1 us
  const auto now = Link::Clock::now();
  EXPECT_GE(link.reserve(1000_B), now + std::chrono::microseconds{1});
}

TEST(Link, CountsOnlyTheLatencyWithoutABandwidth) {
  Link link{{.latency = seconds{1}}};
  const auto first = link.reserve(1_GiB);
  EXPECT_EQ(link.reserve(1_GiB) - first, seconds{1});
  EXPECT_EQ(link.time_of(1_GiB), Nanoseconds{0});
}

TEST(Link, TellsHowLongAPartTakesWithoutTheLatency) {
  const Link link{{.bandwidth = Bandwidth{1000}, .latency = seconds{1}}};
  EXPECT_EQ(link.time_of(500_B), milliseconds{500});
}

// 4 threads reserve 1000 transfers of 1 s each. All 4000 ends differ by whole seconds, so the last
// is 3999 s after the first.
TEST(Link, GivesNoTimeTwiceToManyThreads) {
  Link link{{.bandwidth = Bandwidth{1}}};
  std::vector<std::vector<Link::Clock::time_point>> ends(4);
  std::vector<std::thread> threads;
  threads.reserve(ends.size());
  for (auto& mine : ends) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) mine.push_back(link.reserve(1_B));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Link::Clock::time_point> all;
  for (const auto& some : ends) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_EQ(all[i] - all[i - 1], seconds{1});
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

// RFC 3720, B.4: 32 bytes of zeros, of ones, and of 0 to 31; and the check value of the CRC
// catalogue.
TEST(Crc32c, GivesThePublishedSums) {
  std::array<std::byte, 32> bytes{};
  for (const auto& sum : {crc32c, crc32c_by_table}) {
    bytes.fill(std::byte{0});
    EXPECT_EQ(sum(bytes), 0x8a9136aaU);
    bytes.fill(std::byte{0xff});
    EXPECT_EQ(sum(bytes), 0x62a8ab43U);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    EXPECT_EQ(sum(bytes), 0x46dd794eU);
    EXPECT_EQ(sum(bytes_of("123456789")), 0xe3069283U);
    EXPECT_EQ(sum({}), 0U);
  }
}

TEST(Crc32c, OfPartsIsThatOfEachPart) {
  constexpr std::size_t kPart = 24;
  std::vector<std::byte> bytes(7 * kPart);  // one group of four and three single parts
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i);
  std::array<std::uint32_t, 7> sums{};
  crc32c_of_parts(bytes, sums);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], crc32c_by_table(std::span{bytes}.subspan(i * kPart, kPart)));
  }
}

// Sizes on both sides of the streaming limit (64 KiB), with and without a remainder; starts on and
// off a cache line. Bytes around the target must not change.
TEST(CopyBytes, CopiesExactlyTheBytesAskedFor) {
  std::mt19937 random{1};
  std::vector<std::byte> source(300 << 10);
  for (std::byte& b : source) b = static_cast<std::byte>(random() % 255 + 1);
  alignas(64) static std::array<std::byte, 300 << 10> target;
  for (const std::size_t size : {0UL, 1UL, 4096UL, 65535UL, 65536UL, 65600UL, 65601UL, 262144UL}) {
    for (const std::size_t start : {64UL, 65UL}) {
      target.fill(std::byte{0});
      copy_bytes(std::span{target}.subspan(start, size), std::span{source}.first(size));
      EXPECT_EQ(target[start - 1], std::byte{0});
      EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<long>(size),
                             target.begin() + static_cast<long>(start)));
      EXPECT_EQ(target.at(start + size), std::byte{0});
    }
  }
}

TEST(CopyBytes, RefusesRangesOfDifferentSize) {
  std::array<std::byte, 2> two{};
  std::array<std::byte, 1> one{};
  EXPECT_THROW(copy_bytes(two, one), ContractError);
}

}  // namespace
}  // namespace spillway::um
