// Every kind of broken image and folder of images (broken_kinds.cpp) gives an error, or is counted
// and skipped, with little memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "src/io/data/image_folder.h"
#include "tests/refusal.h"
#include "tests/src/io/data/broken_kinds.h"
#include "tests/src/io/images/image_files.h"
#include "tests/src/io/images/png_file.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

constexpr nets::Shape kShown{.channels = 3, .height = 16, .width = 16};
constexpr long kLittleMemory = 20'000;  // KiB

DatasetPair open(const ImageTree& tree, OnBroken on_broken = OnBroken::kStop) {
  return open_image_folder(
      tree.path(), {.image = kShown, .classes = 2, .seed = 3, .options = {.on_broken = on_broken}});
}

// Shows the training images of the first epoch. Returns their labels.
std::vector<std::int32_t> show_all(const Dataset& data) {
  std::vector<float> image(kShown.elements());
  std::vector<std::int32_t> labels(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    data.show(i, 0, image, std::span{labels}.subspan(i, 1));
  }
  return labels;
}

// Peak memory of this process in KiB.
long peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class BrokenImages : public testing::TestWithParam<BrokenKind> {
 protected:
  // The error from five images; the third one is broken if the kind is a broken image.
  [[nodiscard]] std::string stop_sentence() const {
    return refusal_of([](const DatasetPair& data) { static_cast<void>(show_all(*data.train)); });
  }

  // The error from looking at the files' beginnings, before any is read.
  [[nodiscard]] std::string look_sentence() const {
    return refusal_of([](const DatasetPair& data) { expect_whole_files(data, {}, {}); });
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

 private:
  // The error from opening or using the images.
  template <class Use>
  [[nodiscard]] std::string refusal_of(const Use& use) const {
    const ImageTree tree;
    kind().make(tree);
    return refusal([&] {
      const DatasetPair data = open(tree);
      if (kind().meanwhile) kind().meanwhile(tree);
      use(data);
    });
  }
};

const std::string kAdvice = ", or use --on-broken skip (with --resume, only the latter)";

TEST_P(BrokenImages, GetASentenceOrAreCountedAndSkipped) {
  const long before = peak_memory();
  if (kind().fate == Fate::kSkipped) {
    const std::string sentence = stop_sentence();
    expect_named(sentence);
    EXPECT_TRUE(sentence.ends_with("; remove it" + kAdvice)) << sentence;
    EXPECT_EQ(std::ranges::count(sentence, '\n'), 0) << sentence;
    if (const std::string look = look_sentence(); look != "accepted") expect_named(look);
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
    if (kind().fate == Fate::kRead) {
      EXPECT_EQ(look_sentence(), "accepted");
    }
  }
  EXPECT_LT(peak_memory() - before, kLittleMemory);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BrokenImages, testing::ValuesIn(broken_kinds()),
                         [](const auto& of) { return of.param.name; });

TEST(BrokenKinds, AreMoreThanThirty) { EXPECT_GT(broken_kinds().size(), 30U); }

// Adds `count` files that contain only "N".
void add_texts(const ImageTree& tree, const std::string& folder, std::size_t count) {
  for (std::size_t i = 10; i < 10 + count; ++i) {
    tree.add(folder + std::to_string(i) + ".jpg", FileContent{'N'});
  }
}

TEST(BrokenFolder, HasAllItsBrokenFilesNamedBeforeAnyIsRead) {
  const ImageTree tree;
  add_texts(tree, "train/dog/", 2);
  add_texts(tree, "val/cat/", 1);
  FileContent long_header = golden_image("usual.jpg");  // its header follows 100 KiB of comments
  const FileContent comment = [] {
    FileContent bytes{0xFF, 0xFE, 0xC3, 0x50};
    bytes.resize(2 + 50'000);
    return bytes;
  }();
  for (int i = 0; i < 2; ++i)
    long_header.insert(long_header.begin() + 2, comment.begin(), comment.end());
  tree.add("train/dog/1.jpg", long_header);
  const auto named = [&](const std::string& name) {
    return tree.file(name) + " is neither JPEG nor PNG; ";
  };
  const std::string in_train = named("train/dog/10.jpg") + named("train/dog/11.jpg");
  const auto look = [](const DatasetPair& data, const LookedAt& sets) {
    return refusal([&] { expect_whole_files(data, sets, {}); });
  };
  const std::string advice = "remove them" + kAdvice;
  const DatasetPair data = open(tree);
  EXPECT_EQ(look(data, {}), "3 files are broken: " + in_train + named("val/cat/10.jpg") + advice);
  EXPECT_EQ(look(data, {.test = false}), "2 files are broken: " + in_train + advice);
  EXPECT_EQ(look(data, {.train = false}), named("val/cat/10.jpg") + "remove it" + kAdvice);
  EXPECT_EQ(look(open(tree, OnBroken::kSkip), {}), "accepted");

  tree.add("train/cat/empty.png", {});  // found when the folder is opened
  EXPECT_EQ(refusal([&] { return open(tree); }),
            "4 files are broken: " + tree.file("train/cat/empty.png") + " is empty; " + in_train +
                named("val/cat/10.jpg") + advice);
}

TEST(BrokenFolder, HasTenOfManyBrokenFilesNamed) {
  const ImageTree tree;
  add_texts(tree, "train/dog/", 15);
  const std::string sentence = refusal([&] { expect_whole_files(open(tree), {}, {}); });
  EXPECT_EQ(sentence.find("15 files are broken: " + tree.file("train/dog/10.jpg")), 0U) << sentence;
  EXPECT_NE(sentence.find("19.jpg is neither JPEG nor PNG; and 5 others; remove them"),
            std::string::npos)
      << sentence;
}

TEST(Looking, EndsWhenItIsToldTo) {
  std::stop_source stop;
  std::atomic<std::size_t> seen = 0;
  look_at_each(1'000'000, {.stop = stop.get_token()}, [&](std::size_t /*i*/) {
    if (++seen == 100) stop.request_stop();
  });
  EXPECT_LT(seen, 1'000U);
}

TEST(Looking, ThrowsWhatALookThrows) {
  EXPECT_EQ(refusal([] {
              look_at_each(1'000, {}, [](std::size_t i) {
                if (i == 300) throw um::Error{"the disk is broken"};
              });
            }),
            "the disk is broken");
}

TEST(BrokenFolder, MayBeUnreadable) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const ImageTree tree;
  fs::permissions(tree.file("train/cat/1.jpg"), fs::perms::none);
  EXPECT_NE(refusal([&] { return show_all(*open(tree).train); }).find("Permission denied"),
            std::string::npos);
  EXPECT_EQ(show_all(*open(tree, OnBroken::kSkip).train), (std::vector{-1, 0, 1, 1}));
}

// Decoding all pixels would take 256 MiB; only the shown rows are held.
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
