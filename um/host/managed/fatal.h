#pragma once

#include <string_view>

namespace spillway::um {

/// Writes `sentence` to standard error and aborts the process: for what goes wrong in a page fault,
/// where nothing can be thrown. Allocates nothing and takes no lock.
[[noreturn]] void fatal(std::string_view sentence) noexcept;

}  // namespace spillway::um
