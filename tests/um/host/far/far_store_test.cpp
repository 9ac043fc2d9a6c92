#include "um/host/far/far_store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/um/host/far/pages.h"
#include "um/error.h"
#include "um/host/far/unnamed_file.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

std::string sentence_of(const std::function<void()>& failing) {
  try {
    failing();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

enum class Kind { kRam, kFile };

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(Kind kind, std::ostream* out) { *out << (kind == Kind::kRam ? "Ram" : "File"); }

/// What every far store promises.
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
  far->write(6_MiB, Pages{2_MiB, 3}.bytes());  // to the very end
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

std::string refusal(const fs::path& path) {
  return sentence_of([&] { (void)make_far_store({.file = path.string()}, 4_KiB); });
}

TEST(FarFile, HasNoNameWhileItIsInUse) {
  const test::TemporaryFolder folder;
  const auto in_folder = make_far_store({.file = folder.path()}, 4_KiB);
  const auto named = make_far_store({.file = folder.path() / "far"}, 4_KiB);
  EXPECT_TRUE(fs::is_empty(folder.path()));
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

TEST(FarFile, RefusesAFolderThatIsNotThere) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(refusal(folder.path() / "none" / "far"),
            "cannot put far memory in " + (folder.path() / "none/far").string() +
                ": there is no folder " + (folder.path() / "none").string() +
                "; choose another place with --far file:PATH");
}

TEST(FarFile, RefusesAPathBelowAFile) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "file"} << "text";
  EXPECT_NE(refusal(folder.path() / "file" / "far").find("there is no folder"), std::string::npos);
}

TEST(FarFile, RefusesAFileThatExistsAndLeavesItAlone) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "file";
  std::ofstream{path} << "text";
  EXPECT_EQ(refusal(path), "cannot put far memory in " + path.string() +
                               ", which exists; give a folder or a path that does not exist yet");
  EXPECT_EQ(fs::file_size(path), 4U);
}

TEST(FarFile, RefusesAFolderItMayNotWrite) {
  EXPECT_NE(refusal("/proc").find("cannot make a file for far memory in /proc"), std::string::npos);
}

}  // namespace
}  // namespace spillway::um
