#pragma once

#include <cstddef>
#include <memory>

#include "src/data/dataset.h"

namespace spillway {

/// The first `count` samples of `whole`. Throws: um::Error when there are not as many.
[[nodiscard]] std::unique_ptr<Dataset> first_samples(std::unique_ptr<Dataset> whole,
                                                     std::size_t count);

}  // namespace spillway
