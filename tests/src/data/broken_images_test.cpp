// Files that are no images, or not all of one: refused in a sentence that names them, or skipped.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/data/image_folder.h"
#include "tests/refusal.h"
#include "tests/src/data/images/image_tree.h"
#include "tests/src/data/images/png_file.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

constexpr nets::Shape kShown{.channels = 3, .height = 16, .width = 16};

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

FileContent cut(const std::string& name, std::size_t bytes) {
  FileContent content = golden_image(name);
  content.resize(bytes);
  return content;
}

FileContent changed(const std::string& name, std::size_t place) {
  FileContent content = golden_image(name);
  content[place] ^= 0x5A;
  return content;
}

// With the size in the JPEG's frame header replaced.
FileContent resized_jpeg(std::uint8_t high, std::uint8_t low) {
  FileContent content = golden_image("usual.jpg");
  const FileContent marker{0xFF, 0xC0};
  const auto frame = std::ranges::search(content, marker).begin();
  for (const int i : {5, 7}) *(frame + i) = high;
  for (const int i : {6, 8}) *(frame + i) = low;
  return content;
}

FileContent text(const std::string& words) { return {words.begin(), words.end()}; }

struct BrokenFile {
  std::string what;
  FileContent content;
  std::string cause;  // what the sentence says of it
};

std::vector<BrokenFile> broken_files() {
  return {
      {"JPEG without its end", cut("usual.jpg", 2000), "is cut short"},
      {"JPEG's header alone", cut("usual.jpg", 300), "is "},
      {"three bytes of a JPEG", cut("usual.jpg", 3), "is cut short"},
      {"two bytes of a JPEG", cut("usual.jpg", 2), "is neither JPEG nor PNG"},
      {"progressive JPEG without its end", cut("progressive.jpg", 1500), "is cut short"},
      {"JPEG of 40,000x40,000", resized_jpeg(0x9C, 0x40), "has 40000x40000 pixels, but 1 to"},
      {"JPEG of no pixels", resized_jpeg(0, 0), "is damaged: "},
      {"PNG without its end", cut("rgb.png", 1500), "is cut short"},
      {"PNG's magic number alone", cut("rgb.png", 8), "is cut short"},
      {"PNG's header alone", cut("rgb.png", 33), "is cut short"},
      {"PNG with changed pixels", changed("rgb.png", 43), "is damaged: "},
      {"PNG with a wrong header", changed("rgb.png", 20), "is damaged: "},
      {"PNG of 40,000x40,000", png_file({40000, 40000}, {0}), "has 40000x40000 pixels"},
      {"PNG of 2^31-1 pixels a side", png_file({0x7FFFFFFF, 0x7FFFFFFF}, {0}), "is damaged: "},
      {"PNG of no pixels", png_file({0, 0}, {0}), "is damaged: "},
      {"PNG of an unknown depth", png_file({1, 1, 7}, {0, 1, 2, 3}), "is damaged: "},
      {"PNG of an unknown colour type", png_file({1, 1, 8, 5}, {0, 1, 2, 3}), "is damaged: "},
      {"PNG of a palette that is missing", png_file({1, 1, 8, 3}, {0, 1}), "is damaged: "},
      {"PNG with too few rows", png_file({4, 4}, {0, 1, 2, 3}), "is damaged: "},
      {"PNG with an unknown filter", png_file({1, 1}, {9, 1, 2, 3}), "is damaged: "},
      {"text", text("not an image at all\n"), "is neither JPEG nor PNG"},
      {"GIF", text("GIF89a\1\0\1\0"), "is neither JPEG nor PNG"},
      {"zeros", FileContent(5000), "is neither JPEG nor PNG"},
      {"nothing", {}, "is empty"},
  };
}

TEST(BrokenImages, AreRefusedInASentenceThatNamesThem) {
  for (const auto& [what, content, cause] : broken_files()) {
    const ImageTree tree;
    tree.add("train/cat/3.jpg", content);
    const std::string sentence = refusal([&] { return show_all(*open(tree).train); });
    EXPECT_TRUE(sentence.starts_with(tree.file("train/cat/3.jpg") + ' ' + cause))
        << what << ": " << sentence;
    EXPECT_TRUE(sentence.ends_with("; remove it, or use --on-broken skip")) << what;
  }
}

TEST(BrokenImages, AreSkippedAndToldOfOnce) {
  for (const auto& [what, content, cause] : broken_files()) {
    const ImageTree tree;
    tree.add("train/cat/3.jpg", content);
    const DatasetPair data = open(tree, OnBroken::kSkip);
    const bool is_listed = !content.empty();
    const std::vector<std::int32_t> expected =
        is_listed ? std::vector{0, 0, -1, 1, 1} : std::vector{0, 0, 1, 1};
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(show_all(*data.train), expected) << what;
    const std::vector<std::string> told = data.broken->take_new();
    ASSERT_EQ(told.size(), 1U) << what;
    EXPECT_TRUE(told.front().starts_with(tree.file("train/cat/3.jpg") + ' ' + cause)) << told[0];
    EXPECT_EQ(data.broken->count(), 1U);
    EXPECT_TRUE(data.broken->take_new().empty());
  }
}

// What is named as an image, but is not even a file.
TEST(BrokenImages, MayBeNoFiles) {
  const std::vector<std::pair<std::function<void(const fs::path&)>, std::string>> kinds{
      {[](const fs::path& path) { fs::create_directory(path); },
       "is a folder with the name of an image"},
      {[](const fs::path& path) { fs::create_symlink("nowhere", path); },
       "is a link to a file that is not there"},
      {[](const fs::path& path) { fs::create_symlink(path.filename(), path); },
       "is no ordinary file"},
      {[](const fs::path& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
       "is no ordinary file"}};
  for (const auto& [make, cause] : kinds) {
    const ImageTree tree;
    make(tree.path() / "train/dog/x.jpg");
    EXPECT_EQ(refusal([&] { return open(tree); }),
              tree.file("train/dog/x.jpg") + ' ' + cause + "; remove it, or use --on-broken skip");
    const DatasetPair data = open(tree, OnBroken::kSkip);
    EXPECT_EQ(data.train->size(), 4U);
    EXPECT_EQ(data.broken->count(), 1U);
  }
}

TEST(BrokenImages, MayBeUnreadable) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const ImageTree tree;
  fs::permissions(tree.file("train/cat/1.jpg"), fs::perms::none);
  EXPECT_NE(refusal([&] { return show_all(*open(tree).train); }).find("Permission denied"),
            std::string::npos);
  EXPECT_EQ(show_all(*open(tree, OnBroken::kSkip).train), (std::vector{-1, 0, 1, 1}));
}

TEST(BrokenImages, MayDisappear) {
  const ImageTree tree;
  const DatasetPair data = open(tree);
  tree.remove("train/cat/1.jpg");
  EXPECT_NE(refusal([&] { return show_all(*data.train); }).find(tree.file("train/cat/1.jpg")),
            std::string::npos);
}

// Odd, but whole.
TEST(BrokenImages, AreNotThoseOfOtherColoursOrNames) {
  const ImageTree tree;
  for (const std::string name :
       {"grey.png", "palette.png", "one-bit.png", "alpha.png", "grey-alpha.png", "interlaced.png",
        "sixteen-bit.png", "grey.jpg", "cmyk.jpg", "progressive.jpg"}) {
    tree.add("train/cat/" + name, golden_image(name));
  }
  tree.add("train/cat/really-a.jpg", golden_image("rgb.png"));
  tree.add("train/cat/really-b.png", golden_image("usual.jpg"));
  tree.add("train/cat/UPPER.JPEG", golden_image("usual.jpg"));
  tree.add("train/cat/one-pixel.png", png_file({}, {0, 1, 2, 3}));
  tree.add("train/cat/deep-grey.png", png_file({1, 1, 16, 0}, {0, 1, 2}));
  FileContent longer = golden_image("usual.jpg");
  longer.insert(longer.end(), 100, 7);  // bytes behind the end
  tree.add("train/cat/longer.jpg", longer);
  const DatasetPair data = open(tree);
  EXPECT_EQ(data.train->size(), 4U + 16U);
  EXPECT_EQ(std::ranges::count(show_all(*data.train), 0), 2 + 16);
}

// 64 MiB of pixels in a narrow file would be 256 MiB; only rows of what is shown are held.
TEST(BrokenImages, TakeLittleMemoryHoweverLargeTheyAre) {
  const ImageTree tree;
  constexpr std::uint32_t kSide = 8000;
  tree.add("train/cat/large.png",
           png_file({.width = kSide, .height = kSide, .depth = 1, .color = 0},
                    FileContent((kSide / 8 + 1) * std::size_t{kSide})));
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const DatasetPair data = open(tree);
  const long before = peak();
  EXPECT_EQ(show_all(*data.train).size(), 5U);
  EXPECT_LT(peak() - before, 20'000);  // KiB
}

}  // namespace
}  // namespace spillway::test
