#pragma once

#include <span>
#include <vector>

#include "src/io/weights/name_table.h"

namespace spillway {

/// The names of torchvision's state_dict(), network by network. VGG's number the layers of
/// `arrays`.
[[nodiscard]] std::vector<NameTable> torchvision_names(std::span<const StoredTensor> arrays);

}  // namespace spillway
