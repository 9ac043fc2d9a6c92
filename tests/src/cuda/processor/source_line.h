#pragma once

#include <string>

namespace spillway::processor {

/// The name of the function that begins at `code`, as binutils' addr2line finds it; the address
/// without it.
[[nodiscard]] std::string function_name(const void* code);
/// The file and line that `code` was compiled from, likewise.
[[nodiscard]] std::string source_line(const void* code);

}  // namespace spillway::processor
