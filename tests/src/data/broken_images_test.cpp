// Every kind of broken image, and of broken folder of images (broken_kinds.cpp): a sentence, or one
// that is counted and skipped, within little memory.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "src/data/image_folder.h"
#include "tests/refusal.h"
#include "tests/src/data/broken_kinds.h"
#include "tests/src/data/images/image_tree.h"
#include "tests/src/data/images/png_file.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

constexpr nets::Shape kShown{.channels = 3, .height = 16, .width = 16};
constexpr long kLittleMemory = 20'000;  // KiB

DatasetPair open(const ImageTree& tree, OnBroken on_broken = OnBroken::kStop) {
  return open_image_folder(
      tree.path(), {.image = kShown, .classes = 2, .seed = 3, .options = {.on_broken = on_broken}});
}

// What the images to learn from show in the first epoch; the labels.
std::vector<std::int32_t> show_all(const Dataset& data) {
  std::vector<float> image(kShown.elements());
  std::vector<std::int32_t> labels(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    data.show(i, 0, image, std::span{labels}.subspan(i, 1));
  }
  return labels;
}

// KiB, of this process since it began.
long peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class BrokenImages : public testing::TestWithParam<BrokenKind> {
 protected:
  // Of five images, the third of which is the kind's where there is one.
  [[nodiscard]] std::string stop_sentence() const {
    const ImageTree tree;
    kind().make(tree);
    return refusal([&] {
      const DatasetPair data = open(tree);
      if (kind().meanwhile) kind().meanwhile(tree);
      return show_all(*data.train);
    });
  }

  void expect_counted_once() const {
    const ImageTree tree;
    kind().make(tree);
    const DatasetPair data = open(tree, OnBroken::kSkip);
    if (kind().meanwhile) kind().meanwhile(tree);
    const std::vector<std::int32_t> expected =
        kind().is_listed ? std::vector{0, 0, -1, 1, 1} : std::vector{0, 0, 1, 1};
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(show_all(*data.train), expected);
    const std::vector<std::string> told = data.broken->take_new();
    ASSERT_EQ(told.size(), 1U);
    expect_named(told.front());
    EXPECT_EQ(data.broken->count(), 1U);
    EXPECT_TRUE(data.broken->take_new().empty());
  }

  void expect_named(const std::string& sentence) const {
    EXPECT_NE(sentence.find('/' + kind().file), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(kind().words), std::string::npos) << sentence;
  }

  [[nodiscard]] static const BrokenKind& kind() { return GetParam(); }
};

TEST_P(BrokenImages, GetASentenceOrAreCountedAndSkipped) {
  const long before = peak_memory();
  if (kind().fate == Fate::kSkipped) {
    const std::string sentence = stop_sentence();
    expect_named(sentence);
    EXPECT_TRUE(sentence.ends_with("; remove it, or use --on-broken skip")) << sentence;
    EXPECT_EQ(std::ranges::count(sentence, '\n'), 0) << sentence;
    expect_counted_once();
  } else {
    const ImageTree tree;
    kind().make(tree);
    for (const OnBroken on_broken : {OnBroken::kStop, OnBroken::kSkip}) {
      if (kind().fate == Fate::kRefused) {
        const std::string sentence = refusal([&] { return open(tree, on_broken); });
        EXPECT_NE(sentence.find(kind().words), std::string::npos) << sentence;
      } else {
        const DatasetPair data = open(tree, on_broken);
        const std::size_t images = kind().file.empty() ? 4 : 5;
        std::vector<std::int32_t> labels = show_all(*data.train);
        EXPECT_EQ(labels.size(), images);
        EXPECT_EQ(std::ranges::count(labels, -1), 0);
        EXPECT_EQ(data.broken->count(), 0U);
      }
    }
  }
  EXPECT_LT(peak_memory() - before, kLittleMemory);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BrokenImages, testing::ValuesIn(broken_kinds()),
                         [](const auto& of) { return of.param.name; });

TEST(BrokenKinds, AreMoreThanThirty) { EXPECT_GT(broken_kinds().size(), 30U); }

TEST(BrokenFolder, MayBeUnreadable) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const ImageTree tree;
  fs::permissions(tree.file("train/cat/1.jpg"), fs::perms::none);
  EXPECT_NE(refusal([&] { return show_all(*open(tree).train); }).find("Permission denied"),
            std::string::npos);
  EXPECT_EQ(show_all(*open(tree, OnBroken::kSkip).train), (std::vector{-1, 0, 1, 1}));
}

// 64 MiB of pixels in a narrow file would be 256 MiB; only rows of what is shown are held.
TEST(LargeImages, TakeLittleMemory) {
  const ImageTree tree;
  constexpr std::uint32_t kSide = 8000;
  tree.add("train/cat/large.png",
           png_file({.width = kSide, .height = kSide, .depth = 1, .color = 0},
                    FileContent((kSide / 8 + 1) * std::size_t{kSide})));
  const DatasetPair data = open(tree);
  const long before = peak_memory();
  EXPECT_EQ(show_all(*data.train).size(), 5U);
  EXPECT_LT(peak_memory() - before, kLittleMemory);
}

}  // namespace
}  // namespace spillway::test
