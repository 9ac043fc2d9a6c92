#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/io/images/image_decoder.h"

namespace spillway {

/// As open_image(), of a PNG file.
[[nodiscard]] std::unique_ptr<ImageDecoder> open_png(std::span<const std::byte> file);

}  // namespace spillway
