#pragma once

#include <array>
#include <string>

namespace spillway {

/// The characters by which the files of GPT-2's vocabulary write bytes, in UTF-8: a byte that is
/// printed in Latin 1 stands for itself, the others are U+0100, U+0101 and so on, in their order.
[[nodiscard]] std::array<std::string, 256> byte_characters();

}  // namespace spillway
