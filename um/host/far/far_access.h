#pragma once

#include <cstddef>
#include <span>

#include "um/bytes.h"
#include "um/caller.h"

namespace spillway::um {

/// Throws ContractError unless address, offset and size are multiples of 4096 and the range lies in
/// a far store of `store_size`.
void expect_far_access(Bytes store_size, Bytes offset, std::span<const std::byte> near,
                       Caller where = Caller::here());

}  // namespace spillway::um
