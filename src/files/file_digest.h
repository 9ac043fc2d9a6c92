#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "um/files/input_file.h"

namespace spillway {

/// SHA-256 of all that `file` held when it was opened, as sha256sum prints it.
/// Throws: um::Error when it cannot be read to its end.
[[nodiscard]] std::string sha256_of(const um::InputFile& file);
[[nodiscard]] std::string sha256_of(std::span<const std::byte> bytes);
[[nodiscard]] std::string sha256_of(const std::string& text);

}  // namespace spillway
