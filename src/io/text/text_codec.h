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

/// A text as tokens, and back.
///
/// Thread safety: none.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  /// Tokens are less than this.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Throws: um::Error when `text` cannot be encoded.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) = 0;
  /// The bytes of a token, which may be part of a character; none where no token has the number.
  /// Requires: 0 <= token < size().
  [[nodiscard]] virtual std::string_view text(std::int32_t token) const = 0;
  /// The token that a text begins behind: the end of another one, or of a line.
  [[nodiscard]] virtual std::int32_t beginning() const = 0;
};

/// Bytes are tokens.
[[nodiscard]] std::unique_ptr<TextCodec> make_byte_codec();
/// The tokens of BytePairEncoder.
[[nodiscard]] std::unique_ptr<TextCodec> make_byte_pair_codec(BytePairs pairs);

/// The tokens of a text, all in memory. Throws: um::Error when the file cannot be read, is empty or
/// is no UTF-8.
[[nodiscard]] std::unique_ptr<TokenSequence> encode_file(const std::filesystem::path& file,
                                                         BytePairEncoder& encoder);

}  // namespace spillway
