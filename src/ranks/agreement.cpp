#include "src/ranks/agreement.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "src/ranks/collectives.h"
#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kBefore = 24;  // bytes of an excerpt before the first difference
constexpr std::size_t kExcerpt = 96;
constexpr std::size_t kTexts = 4;  // texts that one sentence quotes

// Number of leading bytes that all texts have in common.
std::size_t common_prefix(std::span<const std::string> texts) {
  std::size_t common = texts[0].size();
  for (const std::string& text : texts) {
    const auto [end, of_first] =
        std::mismatch(text.begin(), text.end(), texts[0].begin(), texts[0].end());
    common = std::min(common, static_cast<std::size_t>(end - text.begin()));
  }
  return common;
}

bool is_inside_character(const std::string& text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;  // UTF-8
}

// Returns part of `text` from a little before byte `at`.
std::string excerpt(const std::string& text, std::size_t at) {
  if (text.empty()) return "nothing";
  std::size_t first = text.size() <= kExcerpt || at < kBefore ? 0 : at - kBefore;
  while (is_inside_character(text, first)) --first;
  std::size_t end = std::min(text.size(), first + kExcerpt);
  while (end > first && is_inside_character(text, end)) --end;
  return (first > 0 ? "'..." : "'") + text.substr(first, end - first) +
         (end < text.size() ? "...'" : "'");
}

// Returns "rank 0 on a has 'x', ranks 1 to 3 on a have 'y'".
std::string differences(std::span<const std::string> texts, std::span<const std::string> nodes) {
  const std::size_t common = common_prefix(texts);
  std::vector<bool> is_told(texts.size());
  std::string sentence;
  for (std::size_t told = 0; told < kTexts; ++told) {
    const auto next = std::find(is_told.begin(), is_told.end(), false);
    if (next == is_told.end()) return sentence;
    const std::string& text = texts[static_cast<std::size_t>(next - is_told.begin())];
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (texts[rank] == text) {
        ranks.push_back(rank);
        is_told[rank] = true;
      }
    }
    sentence += (told == 0 ? "" : ", ") + rank_names(ranks, nodes) +
                (ranks.size() == 1 ? " has " : " have ") + excerpt(text, common);
  }
  return std::count(is_told.begin(), is_told.end(), false) == 0 ? sentence
                                                                : sentence + ", and so on";
}

}  // namespace

void expect_agreement(Communicator& communicator, std::span<const NamedText> texts) {
  um::expects(!texts.empty(), "at least one text to compare");
  std::string names;
  for (const NamedText& named : texts) names += (names.empty() ? "" : ", ") + named.name;
  std::vector<NamedText> compared = {{"what they compare", names}};
  compared.insert(compared.end(), texts.begin(), texts.end());

  std::string sentence;
  std::string advice;
  for (const NamedText& named : compared) {
    const std::vector<std::string> of_ranks = all_gather_texts(communicator, named.text);
    if (std::adjacent_find(of_ranks.begin(), of_ranks.end(), std::not_equal_to<>{}) ==
        of_ranks.end()) {
      continue;
    }
    sentence += (sentence.empty() ? "the ranks differ in " : "; and in ") + named.name + ": " +
                differences(of_ranks, communicator.nodes());
    if (!named.advice.empty()) advice += "; " + named.advice;
    if (&named == compared.data()) break;  // texts after this one would not compare
  }
  if (!sentence.empty()) throw um::Error{sentence + advice};
}

}  // namespace spillway
