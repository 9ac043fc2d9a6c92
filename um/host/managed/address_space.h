#pragma once

#include "um/bytes.h"
#include "um/range.h"

namespace spillway::um {

/// What the pages of fresh addresses allow.
enum class AddressAccess { kNone, kReadWrite };

/// Reserves `size` bytes of addresses, aligned to 2 MiB, without memory behind them; with
/// kReadWrite unknown to child processes. More than the machine has memory may be reserved. Given
/// back by release_addresses(). Throws: Error.
[[nodiscard]] Range reserve_addresses(Bytes size, AddressAccess access);

void release_addresses(Range addresses) noexcept;

}  // namespace spillway::um
