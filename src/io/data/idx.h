#pragma once

#include <filesystem>

#include "src/io/data/dataset.h"

namespace spillway {

/// Opens the four files of MNIST's format in `folder`, as they are or packed with gzip (.gz): grey
/// images of any one size. Those of packed files are all in memory.
/// `classes` is the network's.
/// Throws: um::Error that names the file that is missing or wrong, and what is wrong with it.
[[nodiscard]] DatasetPair open_idx(const std::filesystem::path& folder, std::size_t classes);

}  // namespace spillway
