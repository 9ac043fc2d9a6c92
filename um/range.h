#pragma once

#include <cstddef>
#include <span>

namespace spillway::um {

/// Bytes of one allocation.
using Range = std::span<std::byte>;

}  // namespace spillway::um
