#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace spillway {

/// Cuts a text into the words within which GPT-2's tokens are merged: letters, digits or other
/// characters, each with the space before them, endings such as 's, and spaces.
///
/// Thread safety: none.
class WordSplitter {
 public:
  WordSplitter();

  /// The first byte of `text` that is no UTF-8, or nothing.
  [[nodiscard]] std::optional<std::size_t> first_broken(std::string_view text);
  /// Where the word that begins at `begin` ends. Requires: UTF-8; begin < text.size(), where a word
  /// ended before. Throws: um::Error when there is no memory to find it.
  [[nodiscard]] std::size_t end_of_word(std::string_view text, std::size_t begin);

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const noexcept;
    void operator()(pcre2_real_match_data_8* match) const noexcept;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::unique_ptr<pcre2_real_match_data_8, Free> match_;
};

}  // namespace spillway
