#pragma once

#include <exception>
#include <string_view>

namespace spillway::um {

/// Writes `sentence` to standard error and aborts the process. Serves page faults, which cannot
/// throw. Allocates nothing and takes no lock.
[[noreturn]] void fatal(std::string_view sentence) noexcept;

/// Like fatal(): "spillway: WHAT: EAGAIN, Resource temporarily unavailable; ADVICE".
[[noreturn]] void fatal_refusal(std::string_view what, int errno_value,
                                std::string_view advice) noexcept;

/// Like fatal(), for a page fault that cannot be resolved because of `failure`. Continuing would
/// lose content silently.
[[noreturn]] void fatal_fault(const std::exception_ptr& failure) noexcept;

}  // namespace spillway::um
