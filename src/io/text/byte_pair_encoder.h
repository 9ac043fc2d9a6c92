#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/io/text/byte_pairs.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace spillway {

/// Splits a text into words; GPT-2 merges tokens only within a word. A word has letters, digits or
/// other characters, with the space before them; endings such as 's and runs of spaces are words,
/// too.
///
/// Thread safety: none.
class WordSplitter {
 public:
  WordSplitter();

  /// Returns the first byte of `text` that is not valid UTF-8, or nothing.
  [[nodiscard]] std::optional<std::size_t> first_broken(std::string_view text);
  /// Returns the end of the word that begins at `begin`. Requires: valid UTF-8; begin <
  /// text.size(), at the end of a word or 0. Throws: um::Error when memory is exhausted.
  [[nodiscard]] std::size_t end_of_word(std::string_view text, std::size_t begin);

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const noexcept;
    void operator()(pcre2_real_match_data_8* match) const noexcept;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::unique_ptr<pcre2_real_match_data_8, Free> match_;
};

/// Encodes text as GPT-2 does.
///
/// Thread safety: none.
class BytePairEncoder {
 public:
  explicit BytePairEncoder(BytePairs pairs) : pairs_{std::move(pairs)} {}

  [[nodiscard]] const BytePairs& pairs() const { return pairs_; }
  /// Returns the first byte of `text` that is not valid UTF-8, or nothing.
  [[nodiscard]] std::optional<std::size_t> first_broken(std::string_view text) {
    return splitter_.first_broken(text);
  }
  /// Returns the tokens of `text`. "<|endoftext|>" becomes one token if the vocabulary has it.
  /// Requires: valid UTF-8. Complexity: O(n log n) in the length of a word.
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
