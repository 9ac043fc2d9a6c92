#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/data/text/byte_pairs.h"

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

}  // namespace spillway
