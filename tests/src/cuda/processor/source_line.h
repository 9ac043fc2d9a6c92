#pragma once

#include <string>

namespace spillway::processor {

/// Returns the name of the function at `code`, as binutils' addr2line finds it; otherwise the
/// address.
[[nodiscard]] std::string function_name(const void* code);
/// Returns the file and line of `code`, found in the same way.
[[nodiscard]] std::string source_line(const void* code);

}  // namespace spillway::processor
