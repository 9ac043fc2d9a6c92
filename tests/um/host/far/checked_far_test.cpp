#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/refusal.h"
#include "tests/um/host/far/pages.h"
#include "um/error.h"
#include "um/host/far/far_store.h"

namespace spillway::um {
namespace {

/// Far memory that shows every byte `damage` says changed, for so many reads.
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
  explicit CheckedFarTest(std::unique_ptr<RottenFar> far = std::make_unique<RottenFar>(1_MiB))
      : disk{*far}, checked{std::move(far), "/scratch"} {}

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

}  // namespace
}  // namespace spillway::um
