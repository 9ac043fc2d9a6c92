#pragma once

#include <filesystem>

#include "src/io/data/dataset.h"

namespace spillway {

/// Opens the binary version of CIFAR-10 (Krizhevsky, 2009): data_batch_1.bin to data_batch_5.bin
/// and test_batch.bin in `folder`. `classes` is the network's, at least ten. Throws: um::Error that
/// names the missing or wrong file and says what is wrong.
[[nodiscard]] DatasetPair open_cifar10(const std::filesystem::path& folder, std::size_t classes);

}  // namespace spillway
