#pragma once

#include <exception>
#include <string_view>

namespace spillway::um {

/// Writes `sentence` to standard error and aborts the process: for what goes wrong in a page fault,
/// where nothing can be thrown. Allocates nothing and takes no lock.
[[noreturn]] void fatal(std::string_view sentence) noexcept;

/// As fatal(): "spillway: WHAT: EAGAIN, Resource temporarily unavailable; ADVICE".
[[noreturn]] void fatal_refusal(std::string_view what, int errno_value,
                                std::string_view advice) noexcept;

/// As fatal(), for a page fault that cannot be resolved because of `failure`: going on would lose
/// content that nobody is told of.
[[noreturn]] void fatal_fault(const std::exception_ptr& failure) noexcept;

}  // namespace spillway::um
