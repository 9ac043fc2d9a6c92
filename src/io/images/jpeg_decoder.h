#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/io/images/image_decoder.h"

namespace spillway {

/// Opens a JPEG file as open_image() does. Pixels are those of libjpeg-turbo's accurate integer
/// transform. A part of an image has the same pixels as in the whole.
[[nodiscard]] std::unique_ptr<ImageDecoder> open_jpeg(std::span<const std::byte> file);

}  // namespace spillway
