#pragma once

#include <span>
#include <vector>

#include "src/io/weights/name_table.h"

namespace spillway {

/// Returns the tables of names in torchvision's state_dict(), one per kind of network. VGG's names
/// depend on the layers of `arrays`.
[[nodiscard]] std::vector<NameTable> torchvision_names(std::span<const StoredTensor> arrays);

}  // namespace spillway
