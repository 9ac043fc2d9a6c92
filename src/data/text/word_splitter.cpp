#define PCRE2_CODE_UNIT_WIDTH 8  // NOLINT(readability-identifier-naming): PCRE2 asks for it
#include "src/data/text/word_splitter.h"

#include <pcre2.h>

#include <string>

#include "um/error.h"

namespace spillway {
namespace {

// That of GPT-2's encoder.py. The spaces of Unicode are written out: PCRE2's \s has one more, which
// is none since Unicode 6.3.
std::string word_pattern() {
  const std::string spaces =
      R"(\x{9}-\x{D} \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F})"
      R"(\x{3000})";
  return R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{L}\p{N})" + spaces + "]+|[" + spaces +
         "]+(?![^" + spaces + "])|[" + spaces + "]+";
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

void WordSplitter::Free::operator()(pcre2_real_code_8* code) const noexcept {
  pcre2_code_free(code);
}
void WordSplitter::Free::operator()(pcre2_real_match_data_8* match) const noexcept {
  pcre2_match_data_free(match);
}

WordSplitter::WordSplitter() {
  const std::string pattern = word_pattern();
  int error = 0;
  std::size_t place = 0;
  code_.reset(pcre2_compile(units(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                            &error, &place, nullptr));
  if (!code_) {
    throw um::Error{"PCRE2 does not take the pattern of a word: error " + std::to_string(error) +
                    " at " + std::to_string(place)};
  }
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // without it the same, but slower
  match_.reset(pcre2_match_data_create(1, nullptr));
  if (!match_) throw um::OutOfMemory{"there is no memory to split a text into words"};
}

// PCRE2 checks all of a text before it looks for a match.
std::optional<std::size_t> WordSplitter::first_broken(std::string_view text) {
  const int result =
      pcre2_match(code_.get(), units(text), text.size(), 0, PCRE2_NO_JIT, match_.get(), nullptr);
  const bool is_broken = result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21;
  return is_broken ? std::optional{pcre2_get_startchar(match_.get())} : std::nullopt;
}

std::size_t WordSplitter::end_of_word(std::string_view text, std::size_t begin) {
  const int result = pcre2_match(code_.get(), units(text), text.size(), begin, PCRE2_NO_UTF_CHECK,
                                 match_.get(), nullptr);
  const std::size_t end = result < 0 ? begin : pcre2_get_ovector_pointer(match_.get())[1];
  if (end > begin) return end;
  throw um::Error{"PCRE2 cannot tell where the word at byte " + std::to_string(begin) +
                  " ends: error " + std::to_string(result)};
}

}  // namespace spillway
