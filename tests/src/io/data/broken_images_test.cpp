#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/io/data/image_folder.h"
#include "src/io/random.h"
#include "tests/refusal.h"
#include "tests/src/io/images/image_files.h"
#include "tests/src/io/images/png_file.h"

namespace spillway::test {
namespace {

// The result of opening an unusual image.
enum class Fate : std::uint8_t {
  kSkipped,  ///< an error that names it, or one more skipped file
  kRefused,  ///< an error about the folder, whatever the rule for broken files
  kRead      ///< the image is valid
};

// A kind of broken or unusual image, or of folder of images.
struct BrokenKind {
  std::string name;  ///< "JpegWithoutItsEnd"
  Fate fate;
  // Puts it into a valid folder of images.
  std::function<void(const ImageTree&)> make;
  std::string file = {};   ///< the skipped or read file; empty for a class that is read
  std::string words = {};  ///< the error after the file's name, or a part of it
  // Called after the folder has been opened; may be empty.
  std::function<void(const ImageTree&)> meanwhile = {};
  bool is_listed = true;  ///< a skipped file is in the data set, without a label
};

std::ostream& operator<<(std::ostream& stream, const BrokenKind& kind) {
  return stream << kind.name;
}

// Returns the offset of a marker's segment in a JPEG file, including its two length bytes.
std::size_t segment_of(const FileContent& jpeg, std::uint8_t marker) {
  const std::array<std::uint8_t, 2> name{0xFF, marker};
  const auto found = std::search(jpeg.begin(), jpeg.end(), name.begin(), name.end());
  if (found == jpeg.end()) throw std::logic_error{"no such marker"};
  return static_cast<std::size_t>(found - jpeg.begin()) + 2;
}

// Returns a JPEG file with another size in its frame header.
FileContent resized_jpeg(std::uint8_t high, std::uint8_t low) {
  FileContent content = golden_image("usual.jpg");
  const std::size_t frame = segment_of(content, 0xC0);
  for (const std::size_t i : {3, 5}) content[frame + i] = high;
  for (const std::size_t i : {4, 6}) content[frame + i] = low;
  return content;
}

// Returns a JPEG file with more Huffman codes than a code tree has leaves.
FileContent jpeg_with_wrong_huffman_table() {
  FileContent content = golden_image("usual.jpg");
  const std::size_t table = segment_of(content, 0xC4);
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(table + 3), 2, std::uint8_t{200});
  return content;
}

// Returns a JPEG file with its quantization tables turned into comments.
FileContent jpeg_without_quantization() {
  FileContent content = golden_image("usual.jpg");
  for (std::size_t i = 0; i + 1 < content.size(); ++i) {
    if (content[i] == 0xFF && content[i + 1] == 0xDB) content[i + 1] = 0xFE;
  }
  return content;
}

// Returns a JPEG file with twelve bits a sample.
FileContent jpeg_of_twelve_bits() {
  FileContent content = golden_image("usual.jpg");
  content[segment_of(content, 0xC0) + 2] = 12;
  return content;
}

namespace fs = std::filesystem;

using Kinds = std::vector<BrokenKind>;

const std::string kFile = "train/cat/3.jpg";

FileContent cut(const std::string& name, std::size_t bytes) {
  FileContent content = golden_image(name);
  content.resize(bytes);
  return content;
}

FileContent changed(FileContent content, std::size_t place) {
  content.at(place) ^= 0x5A;
  return content;
}

FileContent text_file(const std::string& words) { return {words.begin(), words.end()}; }

FileContent random_bytes(FileContent begin) {
  Random random{5};
  for (int i = 0; i < 3000; ++i) begin.push_back(static_cast<std::uint8_t>(random.next() >> 56U));
  return begin;
}

// The pixels lie between the header, 33 bytes, and the end, 12 bytes.
FileContent png_without_pixels() {
  FileContent content = png_file({}, {0, 1, 2, 3});
  content.erase(content.begin() + 33, content.end() - 12);
  return content;
}

FileContent png_of_wrong_checksum() {
  const FileContent content = png_file({}, {0, 1, 2, 3});
  return changed(content, content.size() - 12 - 1);
}

BrokenKind skipped(std::string name, FileContent content, std::string words) {
  const bool is_listed = !content.empty();
  return {
      .name = std::move(name),
      .fate = Fate::kSkipped,
      .make = [content = std::move(content)](const ImageTree& tree) { tree.add(kFile, content); },
      .file = kFile,
      .words = std::move(words),
      .is_listed = is_listed};
}

void append_jpegs(Kinds& kinds) {
  kinds.insert(
      kinds.end(),
      {skipped("JpegWithoutItsEnd", cut("usual.jpg", 2000), "is cut short"),
       skipped("JpegsHeaderAlone", cut("usual.jpg", 300), "is "),
       skipped("ThreeBytesOfAJpeg", cut("usual.jpg", 3), "is cut short"),
       skipped("TwoBytesOfAJpeg", cut("usual.jpg", 2), "is neither JPEG nor PNG"),
       skipped("ProgressiveJpegWithoutItsEnd", cut("progressive.jpg", 1500), "is cut short"),
       skipped("JpegBomb", resized_jpeg(0x9C, 0x40), "has 40000x40000 pixels, but 1 to"),
       skipped("JpegOfNoPixels", resized_jpeg(0, 0), "is damaged: "),
       skipped("JpegOfTwelveBits", jpeg_of_twelve_bits(), "is damaged: "),
       skipped("JpegWithAWrongHuffmanTable", jpeg_with_wrong_huffman_table(), "is damaged: "),
       skipped("JpegWithoutQuantization", jpeg_without_quantization(), "is damaged: "),
       skipped("RandomBytesBehindAJpegsFirst", random_bytes({0xFF, 0xD8, 0xFF}), "is ")});
}

void append_pngs(Kinds& kinds) {
  const FileContent rgb = golden_image("rgb.png");
  kinds.insert(
      kinds.end(),
      {skipped("PngWithoutItsEnd", cut("rgb.png", 1500), "is cut short"),
       skipped("PngsFirstBytesAlone", cut("rgb.png", 8), "is cut short"),
       skipped("PngsHeaderAlone", cut("rgb.png", 33), "is cut short"),
       skipped("PngWithChangedPixels", changed(rgb, 43), "is damaged: "),
       skipped("PngWithAChangedHeader", changed(rgb, 20), "is damaged: "),
       skipped("PngWithAWrongChecksum", png_of_wrong_checksum(), "is damaged: "),
       skipped("PngWithoutPixels", png_without_pixels(), "is damaged: "),
       skipped("PngBomb", png_file({40000, 40000}, {0}), "has 40000x40000 pixels"),
       skipped("PngOfOneLongRow", png_file({1U << 25U, 1}, {0}),
               "has 33554432x1 pixels, but sides of at most 65535 are decoded"),
       skipped("PngOfTwoBillionPixelsASide", png_file({0x7FFFFFFF, 0x7FFFFFFF}, {0}),
               "is damaged: "),
       skipped("PngOfNoPixels", png_file({0, 0}, {0}), "is damaged: "),
       skipped("PngOfAnUnknownDepth", png_file({1, 1, 7}, {0, 1, 2, 3}), "is damaged: "),
       skipped("PngOfAnUnknownColourType", png_file({1, 1, 8, 5}, {0, 1, 2, 3}), "is damaged: "),
       skipped("PngWithoutItsPalette", png_file({1, 1, 8, 3}, {0, 1}), "is damaged: "),
       skipped("PngWithTooFewRows", png_file({4, 4}, {0, 1, 2, 3}), "is damaged: "),
       skipped("PngWithAnUnknownFilter", png_file({1, 1}, {9, 1, 2, 3}), "is damaged: "),
       skipped("RandomBytesBehindAPngsFirst", random_bytes(cut("rgb.png", 8)), "is ")});
}

void append_other_files(Kinds& kinds) {
  kinds.insert(kinds.end(),
               {skipped("Text", text_file("not an image at all\n"), "is neither JPEG nor PNG"),
                skipped("Gif", text_file("GIF89a\1\0\1\0"), "is neither JPEG nor PNG"),
                skipped("Zeros", FileContent(5000), "is neither JPEG nor PNG"),
                skipped("RandomBytes", random_bytes({}), "is neither JPEG nor PNG"),
                skipped("Nothing", {}, "is empty")});
  // A sparse file, which uses no disk space.
  kinds.push_back({.name = "MoreThanAFileMayHave",
                   .fate = Fate::kSkipped,
                   .make =
                       [](const ImageTree& tree) {
                         tree.add(kFile, golden_image("usual.jpg"));
                         fs::resize_file(tree.file(kFile), std::uintmax_t{300} << 20U);
                       },
                   .file = kFile,
                   .words = "has 314572800 bytes, more than"});
}

// Entries with an image's name that are not regular files.
void append_no_files(Kinds& kinds) {
  const auto append = [&](const char* name, const char* words, auto make) {
    kinds.push_back({.name = name,
                     .fate = Fate::kSkipped,
                     .make = [make](const ImageTree& tree) { make(fs::path{tree.file(kFile)}); },
                     .file = kFile,
                     .words = words,
                     .is_listed = false});
  };
  append("Folder", "is a folder with the name of an image",
         [](const fs::path& path) { fs::create_directory(path); });
  append("LinkToNothing", "is a link to a file that is not there",
         [](const fs::path& path) { fs::create_symlink("nowhere", path); });
  append("LinkToItself", "is no ordinary file",
         [](const fs::path& path) { fs::create_symlink(path.filename(), path); });
  append("Device", "is no ordinary file",
         [](const fs::path& path) { fs::create_symlink("/dev/zero", path); });
  append("Fifo", "is no ordinary file", [](const fs::path& path) {
    if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error{"no FIFO"};
  });
  // Stands for unreadable files, too, as root can read those.
  kinds.push_back(
      {.name = "FileThatDisappears",
       .fate = Fate::kSkipped,
       .make = [](const ImageTree& tree) { tree.add(kFile, golden_image("usual.jpg")); },
       .file = kFile,
       .words = "No such file or directory",
       .meanwhile = [](const ImageTree& tree) { tree.remove(kFile); }});
}

void append_folders(Kinds& kinds) {
  const auto append = [&](const char* name, const char* words, auto make) {
    kinds.push_back({.name = name, .fate = Fate::kRefused, .make = make, .words = words});
  };
  const auto make_folder = [](const char* name) {
    return [name](const ImageTree& tree) { fs::create_directories(tree.path() / name); };
  };
  append("EmptyClass", "there is no image in ", make_folder("train/ant"));
  append("EmptyClassToTestOn", "there is no image in ", [](const ImageTree& tree) {
    tree.remove("val/cat");
    fs::create_directory(tree.path() / "val/cat");
  });
  append("ClassOfOtherFiles", "there is no image in ", [](const ImageTree& tree) {
    tree.add("train/ant/readme.txt", {'x'});
    tree.add("train/ant/.hidden.jpg", golden_image("usual.jpg"));
  });
  append("OneClassAlone", "there is one folder alone, cat, in ",
         [](const ImageTree& tree) { tree.remove("train/dog"); });
  append("NoClass", "there is no folder in ", [](const ImageTree& tree) {
    tree.remove("train");
    fs::create_directory(tree.path() / "train");
  });
  append("EmptyFolder", "there is no folder in ", [](const ImageTree& tree) {
    tree.remove("train");
    tree.remove("val");
  });
  append("NothingToLearnFrom", "but no folder ",
         [](const ImageTree& tree) { tree.remove("train"); });
  append("NothingToTestOn", "there is no folder in ", [](const ImageTree& tree) {
    tree.remove("val");
    fs::create_directory(tree.path() / "val");
  });
  append("OtherClassesToTestOn", "there is a class bee in ",
         [](const ImageTree& tree) { tree.add("val/bee/1.jpg", golden_image("usual.jpg")); });
  append("OneImageOfEachClass", "no class has two images", [](const ImageTree& tree) {
    tree.remove("val");
    for (const char* name : {"train/cat/1.jpg", "train/dog/1.jpg"}) tree.remove(name);
  });
}

// Files that are unusual but valid.
void append_whole_ones(Kinds& kinds) {
  const auto append = [&](const char* name, const std::string& file, const FileContent& content) {
    kinds.push_back({.name = name,
                     .fate = Fate::kRead,
                     .make = [=](const ImageTree& tree) { tree.add(file, content); },
                     .file = file});
  };
  const FileContent usual = golden_image("usual.jpg");
  for (const auto& [name, golden] :
       std::vector<std::pair<const char*, std::string>>{{"Cmyk", "cmyk.jpg"},
                                                        {"GreyJpeg", "grey.jpg"},
                                                        {"ProgressiveJpeg", "progressive.jpg"},
                                                        {"ArithmeticJpeg", "arithmetic.jpg"},
                                                        {"GreyPng", "grey.png"},
                                                        {"Palette", "palette.png"},
                                                        {"OneBit", "one-bit.png"},
                                                        {"SixteenBits", "sixteen-bit.png"},
                                                        {"Transparent", "alpha.png"},
                                                        {"GreyAndTransparent", "grey-alpha.png"},
                                                        {"Interlaced", "interlaced.png"}}) {
    append(name, "train/cat/odd-" + golden, golden_image(golden));
  }
  append("OnePixel", "train/cat/3.png", png_file({}, {0, 1, 2, 3}));
  append("OnePixelOfSixteenBits", "train/cat/3.png", png_file({1, 1, 16, 0}, {0, 1, 2}));
  append("PngCalledJpeg", kFile, golden_image("rgb.png"));
  append("JpegCalledPng", "train/cat/3.png", usual);
  append("EndingInCapitals", "train/cat/3.JPEG", usual);
  append("NameOfOddBytes", "train/cat/\xFF\xFE \n\x1B[31m.jpg", usual);
  append("LongName", "train/cat/" + std::string(251, 'x') + ".jpg", usual);
  append("TurnedByExif", kFile, with_orientation(usual, 6));
  append("BrokenExif", kFile, changed(with_orientation(usual, 6), 15));
  FileContent longer = usual;
  longer.insert(longer.end(), 100, 7);
  append("BytesBehindTheEnd", kFile, longer);
}

// Added to train and val, so that both have the class.
void append_names_of_classes(Kinds& kinds) {
  for (const auto& [name, folder] : std::vector<std::pair<const char*, std::string>>{
           {"ClassOfOddBytes", "\xFF\xFE \n\x1B[31m"},
           {"ClassOfALongName", std::string(255, 'x')}}) {
    kinds.push_back(
        {.name = name, .fate = Fate::kRead, .make = [at = folder](const ImageTree& tree) {
           for (const char* const part : {"train/", "val/"}) {
             fs::rename(tree.path() / part / "cat", tree.path() / part / at);
           }
         }});
  }
}

// Returns more than thirty kinds.
std::vector<BrokenKind> broken_kinds() {
  Kinds kinds;
  append_jpegs(kinds);
  append_pngs(kinds);
  append_other_files(kinds);
  append_no_files(kinds);
  append_folders(kinds);
  append_whole_ones(kinds);
  append_names_of_classes(kinds);
  return kinds;
}

// Every kind of broken image and folder of images (broken_kinds.cpp) gives an error, or is counted
// and skipped, with little memory.

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
