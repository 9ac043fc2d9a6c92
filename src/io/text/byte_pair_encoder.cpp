#include "src/io/text/byte_pair_encoder.h"

#define PCRE2_CODE_UNIT_WIDTH 8  // NOLINT(readability-identifier-naming): PCRE2 asks for it
#include <pcre2.h>

#include <algorithm>
#include <queue>
#include <string>
#include <tuple>

#include "um/error.h"

namespace spillway {
namespace {

// The pattern of GPT-2's encoder.py. Unicode's spaces are written out: PCRE2's \s also has a
// character that Unicode 6.3 removed.
std::string word_pattern() {
  const std::string spaces =
      R"(\x{9}-\x{D} \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F})"
      R"(\x{3000})";
  return R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{L}\p{N})" + spaces + "]+|[" + spaces +
         "]+(?![^" + spaces + "])|[" + spaces + "]+";
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

constexpr std::size_t kMostKnownWords = 1ULL << 18U;
constexpr std::size_t kLongestKnownWord = 64;

// Merges the tokens of a word.
class Merging {
 public:
  Merging(const BytePairs& pairs, std::string_view word) : pairs_{pairs}, parts_(word.size()) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      parts_[i] = {.token = pairs.bytes[static_cast<unsigned char>(word[i])],
                   .previous = i - 1,
                   .next = i + 1};
    }
    for (std::size_t i = 0; i + 1 < word.size(); ++i) propose(i);
  }

  std::vector<std::int32_t> result() {
    while (!proposals_.empty()) {
      const Proposal best = proposals_.top();
      proposals_.pop();
      if (is_current(best)) merge(best);
    }
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < parts_.size(); i = parts_[i].next)
      tokens.push_back(parts_[i].token);
    return tokens;
  }

 private:
  static constexpr std::int32_t kGone = -1;  // merged into the part before

  struct Part {
    std::int32_t token;
    std::size_t previous;  // invalid in the first part
    std::size_t next;
  };
  // A possible merge of the part at `place` and the next one.
  struct Proposal {
    std::uint32_t rank;
    std::size_t place;
    std::int32_t left;  // the two tokens when it was proposed
    std::int32_t right;
    std::int32_t token;
    bool operator>(const Proposal& other) const {
      return std::tie(rank, place) > std::tie(other.rank, other.place);
    }
  };

  void propose(std::size_t place) {
    const std::int32_t left = parts_[place].token;
    const std::int32_t right = parts_[parts_[place].next].token;
    const auto merge = pairs_.merges.find(BytePairs::key(left, right));
    if (merge == pairs_.merges.end()) return;
    proposals_.push({.rank = merge->second.rank,
                     .place = place,
                     .left = left,
                     .right = right,
                     .token = merge->second.token});
  }

  [[nodiscard]] bool is_current(const Proposal& proposal) const {
    const Part& part = parts_[proposal.place];
    return part.token == proposal.left && part.next < parts_.size() &&
           parts_[part.next].token == proposal.right;
  }

  void merge(const Proposal& proposal) {
    Part& part = parts_[proposal.place];
    parts_[part.next].token = kGone;
    part.token = proposal.token;
    part.next = parts_[part.next].next;
    if (part.next < parts_.size()) {
      parts_[part.next].previous = proposal.place;
      propose(proposal.place);
    }
    if (part.previous < parts_.size()) propose(part.previous);
  }

  const BytePairs& pairs_;
  std::vector<Part> parts_;
  std::priority_queue<Proposal, std::vector<Proposal>, std::greater<>> proposals_;
};

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
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // works without it, but slower
  match_.reset(pcre2_match_data_create(1, nullptr));
  if (!match_) throw um::OutOfMemory{"there is no memory to split a text into words"};
}

// PCRE2 checks the whole text before it looks for a match.
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

std::vector<std::int32_t> BytePairEncoder::encode(std::string_view text) {
  Tokens tokens;
  while (!text.empty()) {
    const std::size_t end = pairs_.end_of_text ? text.find(kEndOfText) : text.npos;
    append_part(text.substr(0, end), tokens);
    if (end == text.npos) break;
    tokens.push_back(*pairs_.end_of_text);
    text.remove_prefix(end + kEndOfText.size());
  }
  return tokens;
}

void BytePairEncoder::append_part(std::string_view part, Tokens& tokens) {
  for (std::size_t begin = 0; begin < part.size();) {
    const std::size_t end = splitter_.end_of_word(part, begin);
    append_word(part.substr(begin, end - begin), tokens);
    begin = end;
  }
}

void BytePairEncoder::append_word(std::string_view word, Tokens& tokens) {
  auto known = known_words_.find(word);
  if (known == known_words_.end()) {
    Tokens own = Merging{pairs_, word}.result();
    if (word.size() > kLongestKnownWord || known_words_.size() == kMostKnownWords) {
      tokens.insert(tokens.end(), own.begin(), own.end());
      return;
    }
    known = known_words_.emplace(word, std::move(own)).first;
  }
  tokens.insert(tokens.end(), known->second.begin(), known->second.end());
}

}  // namespace spillway
