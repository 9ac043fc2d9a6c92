#pragma once

#include <cstddef>
#include <span>

#include "src/data/images/orientation.h"

namespace spillway {

/// The orientation that the EXIF data of a JPEG file tell of, as Pillow's exif_transpose() applies
/// it: that of the first segment of such data. Upright where there are none, or where they are
/// broken. Looks at nothing behind the file's headers.
[[nodiscard]] Orientation exif_orientation(std::span<const std::byte> jpeg);

}  // namespace spillway
