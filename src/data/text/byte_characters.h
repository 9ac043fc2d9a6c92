#pragma once

#include <array>
#include <string>
#include <string_view>

namespace spillway {

/// The characters by which the files of GPT-2's vocabulary write bytes, in UTF-8: a byte that is
/// printed in Latin 1 stands for itself, the others are U+0100, U+0101 and so on, in their order.
[[nodiscard]] std::array<std::string, 256> byte_characters();

/// The bytes that `characters` stand for. What stands for no byte stays as it is.
[[nodiscard]] std::string bytes_of_characters(std::string_view characters);

}  // namespace spillway
