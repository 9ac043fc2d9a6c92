#pragma once

#include <exception>
#include <functional>

namespace spillway::um {

/// Called once when a move has ended, from the thread that ended it; the argument is null when the
/// move succeeded. Must return quickly and must not throw or touch managed memory.
using Completion = std::function<void(std::exception_ptr)>;

}  // namespace spillway::um
