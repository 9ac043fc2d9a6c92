#pragma once

#include <filesystem>
#include <memory>

#include "src/data/text/byte_pair_encoder.h"
#include "src/data/text/token_sequence.h"

namespace spillway {

/// The tokens of a text, all in memory. Throws: um::Error when the file cannot be read, is empty or
/// is no UTF-8.
[[nodiscard]] std::unique_ptr<TokenSequence> encode_file(const std::filesystem::path& file,
                                                         BytePairEncoder& encoder);

}  // namespace spillway
