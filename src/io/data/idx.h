#pragma once

#include <filesystem>

#include "src/io/data/dataset.h"

namespace spillway {

/// Opens the four files of MNIST's format in `folder`, plain or packed with gzip (.gz). Images are
/// grey and all of one size. Packed files are unpacked into memory.
/// `classes` is the network's.
/// Throws: um::Error that names the missing or wrong file and says what is wrong.
[[nodiscard]] DatasetPair open_idx(const std::filesystem::path& folder, std::size_t classes);

}  // namespace spillway
