#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "tests/src/data/images/golden_images.h"

namespace spillway::test {

/// The place of a marker's content in a JPEG file, its two bytes of length included.
[[nodiscard]] inline std::size_t segment_of(const FileContent& jpeg, std::uint8_t marker) {
  const std::array<std::uint8_t, 2> name{0xFF, marker};
  const auto found = std::ranges::search(jpeg, name).begin();
  if (found == jpeg.end()) throw std::logic_error{"no such marker"};
  return static_cast<std::size_t>(found - jpeg.begin()) + 2;
}

/// With the size in the JPEG's frame header replaced.
[[nodiscard]] inline FileContent resized_jpeg(std::uint8_t high, std::uint8_t low) {
  FileContent content = golden_image("usual.jpg");
  const std::size_t frame = segment_of(content, 0xC0);
  for (const std::size_t i : {3, 5}) content[frame + i] = high;
  for (const std::size_t i : {4, 6}) content[frame + i] = low;
  return content;
}

/// Numbers of codes by length, of which there are more than a code tree has leaves.
[[nodiscard]] inline FileContent jpeg_with_wrong_huffman_table() {
  FileContent content = golden_image("usual.jpg");
  const std::size_t table = segment_of(content, 0xC4);
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(table + 3), 2, std::uint8_t{200});
  return content;
}

/// Its tables are comments.
[[nodiscard]] inline FileContent jpeg_without_quantization() {
  FileContent content = golden_image("usual.jpg");
  for (std::size_t i = 0; i + 1 < content.size(); ++i) {
    if (content[i] == 0xFF && content[i + 1] == 0xDB) content[i + 1] = 0xFE;
  }
  return content;
}

/// Of the twelve bits that no photo has.
[[nodiscard]] inline FileContent jpeg_of_twelve_bits() {
  FileContent content = golden_image("usual.jpg");
  content[segment_of(content, 0xC0) + 2] = 12;
  return content;
}

}  // namespace spillway::test
