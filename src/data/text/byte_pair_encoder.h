#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/data/text/byte_pairs.h"
#include "src/data/text/word_splitter.h"

namespace spillway {

/// Makes tokens of text, as GPT-2 does.
///
/// Thread safety: none.
class BytePairEncoder {
 public:
  explicit BytePairEncoder(BytePairs pairs) : pairs_{std::move(pairs)} {}

  [[nodiscard]] const BytePairs& pairs() const { return pairs_; }
  /// The first byte of `text` that is no UTF-8, or nothing.
  [[nodiscard]] std::optional<std::size_t> first_broken(std::string_view text) {
    return splitter_.first_broken(text);
  }
  /// The tokens of `text`; "<|endoftext|>" is one of its own where the vocabulary has it.
  /// Requires: UTF-8. Complexity: O(n log n) in the length of a word.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text);

 private:
  using Tokens = std::vector<std::int32_t>;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
  };

  void append_part(std::string_view part, Tokens& tokens);
  void append_word(std::string_view word, Tokens& tokens);

  BytePairs pairs_;
  WordSplitter splitter_;
  std::unordered_map<std::string, Tokens, Hash, std::equal_to<>> known_words_;
};

}  // namespace spillway
