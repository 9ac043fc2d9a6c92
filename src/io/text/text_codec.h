#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "src/io/text/byte_pair_encoder.h"
#include "src/io/text/byte_pairs.h"
#include "src/io/text/token_file.h"

namespace spillway {

/// Encodes a text as tokens, and decodes tokens.
///
/// Thread safety: none.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  /// Size of the vocabulary; tokens are less than this.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Throws: um::Error when `text` cannot be encoded.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) = 0;
  /// Returns the bytes of a token, which may be part of a character; empty for unused numbers.
  /// Requires: 0 <= token < size().
  [[nodiscard]] virtual std::string_view text(std::int32_t token) const = 0;
  /// The token that precedes a text: an end of text, or of a line.
  [[nodiscard]] virtual std::int32_t beginning() const = 0;
};

/// Makes a codec with a token for each byte.
[[nodiscard]] std::unique_ptr<TextCodec> make_byte_codec();
/// Makes a codec with the tokens of BytePairEncoder.
[[nodiscard]] std::unique_ptr<TextCodec> make_byte_pair_codec(BytePairs pairs);

/// Encodes a text file into memory. Throws: um::Error when the file cannot be read, is empty or is
/// not valid UTF-8.
[[nodiscard]] std::unique_ptr<TokenSequence> encode_file(const std::filesystem::path& file,
                                                         BytePairEncoder& encoder);

}  // namespace spillway
