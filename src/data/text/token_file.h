#pragma once

#include <filesystem>
#include <memory>

#include "src/data/text/token_sequence.h"

namespace spillway {

/// The bytes of a file, each a token. Throws: um::Error when it cannot be read or is empty.
[[nodiscard]] std::unique_ptr<TokenSequence> open_bytes(const std::filesystem::path& file);

/// The tokens in a file of llm.c's: 256 numbers of 32 bits, the first of them 20240520, the version
/// 1, and the number of tokens, then these, of 16 bits. A file that begins otherwise is all tokens
/// of 16 bits, as nanoGPT writes them. Throws: um::Error that says what is wrong with the file.
[[nodiscard]] std::unique_ptr<TokenSequence> open_token_file(const std::filesystem::path& file);

}  // namespace spillway
