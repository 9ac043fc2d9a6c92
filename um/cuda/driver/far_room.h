#pragma once

#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// What to do when RAM has no room for far memory.
inline constexpr const char* kFarAdvice =
    "use a larger budget or a smaller batch, so that less has to be far";

/// Throws: OutOfMemory unless RAM has `size` bytes, and a margin of 1 GiB for everything else. Its
/// sentence says what cannot be done, as in "pin 3 GiB of RAM", and what to do instead.
void expect_far_room(Bytes size, const std::string& deed);

}  // namespace spillway::um
