#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/src/io/images/golden_images.h"

namespace spillway::test {

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
