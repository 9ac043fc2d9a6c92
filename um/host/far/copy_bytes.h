#pragma once

#include <cstddef>
#include <span>

namespace spillway::um {

/// Copies `from` to `to`, past the caches where that is faster: large, aligned pieces on x86.
/// Allocates nothing, so that a page-fault handler may call it.
/// Requires: both have the same size and do not overlap.
void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace spillway::um
