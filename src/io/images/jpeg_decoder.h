#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/io/images/image_decoder.h"

namespace spillway {

/// As open_image(), of a JPEG file. Pixels are those of libjpeg-turbo's accurate integer transform;
/// those of a part of the image are the same as in the whole of it.
[[nodiscard]] std::unique_ptr<ImageDecoder> open_jpeg(std::span<const std::byte> file);

}  // namespace spillway
