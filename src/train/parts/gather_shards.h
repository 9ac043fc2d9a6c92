#pragma once

#include <cstddef>
#include <span>

#include "src/ranks/communicator.h"

namespace spillway {

/// What each rank computed of its shards (shards_of_rank()), to all: `all` has `each` bytes for
/// each of `shards` shards, in order, of which this rank has filled in its own. Throws: what
/// Communicator throws.
void gather_shards(Communicator& communicator, std::size_t shards, std::size_t each,
                   std::span<std::byte> all);

}  // namespace spillway
