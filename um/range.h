#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <span>

namespace spillway::um {

/// Bytes of one allocation.
using Range = std::span<std::byte>;

/// Called once when a move has ended, from the thread that ended it; the argument is null when the
/// move succeeded. Must return quickly and must not throw or touch managed memory.
using Completion = std::function<void(std::exception_ptr)>;

}  // namespace spillway::um
