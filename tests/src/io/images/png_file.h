#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::test {

/// Fields of a PNG file's header, which may be wrong.
struct PngHeader {
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  std::uint8_t depth = 8;
  std::uint8_t color = 2;  ///< 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA
  std::uint8_t interlacing = 0;
};

/// Returns a file with this header and `rows` as pixels, each row's bytes after its filter byte.
[[nodiscard]] inline std::vector<std::uint8_t> png_file(const PngHeader& header,
                                                        const std::vector<std::uint8_t>& rows) {
  std::vector<std::uint8_t> file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  const auto append_number = [](std::vector<std::uint8_t>& bytes, std::uint32_t number) {
    for (unsigned shift = 32; shift > 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(number >> (shift - 8)));
    }
  };
  const auto append_chunk = [&](const std::string& name, const std::vector<std::uint8_t>& content) {
    append_number(file, static_cast<std::uint32_t>(content.size()));
    std::vector<std::uint8_t> checked{name.begin(), name.end()};
    checked.insert(checked.end(), content.begin(), content.end());
    file.insert(file.end(), checked.begin(), checked.end());
    append_number(file, static_cast<std::uint32_t>(
                            crc32(0, checked.data(), static_cast<uInt>(checked.size()))));
  };
  std::vector<std::uint8_t> head;
  append_number(head, header.width);
  append_number(head, header.height);
  head.insert(head.end(), {header.depth, header.color, 0, 0, header.interlacing});
  append_chunk("IHDR", head);
  std::vector<std::uint8_t> packed(compressBound(rows.size()));
  uLongf size = packed.size();
  compress(packed.data(), &size, rows.data(), rows.size());
  packed.resize(size);
  append_chunk("IDAT", packed);
  append_chunk("IEND", {});
  return file;
}

}  // namespace spillway::test
