#include "tests/src/io/data/broken_kinds.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "src/io/random.h"
#include "tests/src/io/images/image_files.h"
#include "tests/src/io/images/png_file.h"

namespace spillway::test {
namespace {

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

}  // namespace

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

}  // namespace spillway::test
