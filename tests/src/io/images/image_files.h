#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace spillway::test {

/// Returns tests/golden/images, or a file in it.
[[nodiscard]] inline std::filesystem::path image_golden(const std::string& name = {}) {
  return std::filesystem::path{SPILLWAY_GOLDEN_FILES} / "images" / name;
}

using FileContent = std::vector<std::uint8_t>;

[[nodiscard]] inline FileContent golden_image(const std::string& name) {
  std::ifstream file{image_golden(name), std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Returns the results of Pillow and torchvision for these images (tools/golden/make_image_golden).
[[nodiscard]] inline nlohmann::json golden_numbers() {
  return nlohmann::json::parse(std::ifstream{image_golden("images.json")});
}

/// Converts hexadecimal digits to bytes.
[[nodiscard]] inline FileContent bytes_of(const std::string& digits) {
  FileContent bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// A folder of images: train/{cat,dog} with two images each, val/{cat,dog} with one.
class ImageTree {
 public:
  ImageTree() {
    for (const std::string name : {"cat", "dog"}) {
      add("train/" + name + "/1.jpg", golden_image("usual.jpg"));
      add("train/" + name + "/2.png", golden_image("rgb.png"));
      add("val/" + name + "/1.jpg", golden_image("full-color.jpg"));
    }
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  void add(const std::string& name, const FileContent& content) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, content);
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path() / name); }

 private:
  TemporaryFolder folder_;
};

enum class TiffOrder : std::uint8_t { kBig, kLittle };

/// Number of bytes that with_orientation() adds.
inline constexpr std::size_t kExifBytes = 4 + 6 + 8 + 2 + 12 + 4;

/// Returns a JPEG file with EXIF data of one tag, the orientation, after its first two bytes.
[[nodiscard]] inline FileContent with_orientation(const FileContent& jpeg, unsigned number,
                                                  TiffOrder order = TiffOrder::kBig) {
  constexpr std::size_t kMarker = 4;  // including its length
  FileContent data(kExifBytes - kMarker);
  data = {'E', 'x', 'i', 'f', 0, 0};  // shorter than the room reserved
  const auto append = [&](unsigned value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
      const unsigned shift = 8 * (order == TiffOrder::kBig ? bytes - 1 - i : i);
      data.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  };
  data.insert(data.end(), 2, order == TiffOrder::kBig ? 'M' : 'I');
  append(42, 2);
  append(8, 4);       // offset of the directory
  append(1, 2);       // one tag:
  append(0x0112, 2);  // orientation
  append(3, 2);       // 16 bits
  append(1, 4);       // one number
  append(number, 2);
  append(0, 2);
  append(0, 4);  // no other directory
  FileContent file(jpeg.size() + kExifBytes);
  const FileContent marker{0xFF, 0xD8, 0xFF, 0xE1, 0, static_cast<std::uint8_t>(data.size() + 2)};
  const auto at = std::ranges::copy(marker, file.begin()).out;
  std::copy(jpeg.begin() + 2, jpeg.end(), std::ranges::copy(data, at).out);
  return file;
}

}  // namespace spillway::test
