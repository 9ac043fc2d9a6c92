#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/io/images/image_decoder.h"

namespace spillway {

/// Opens a PNG file as open_image() does.
[[nodiscard]] std::unique_ptr<ImageDecoder> open_png(std::span<const std::byte> file);

}  // namespace spillway
