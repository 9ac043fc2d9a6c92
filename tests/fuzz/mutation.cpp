#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tests/fuzz/resealed.h"

namespace spillway::fuzz {
namespace {

constexpr std::size_t kLongest = 1U << 18U;  // a case takes no longer than it must

// What readers have a special word for, or trip over.
constexpr std::array<std::string_view, 24> kWords{"0",
                                                  "-1",
                                                  "1e308",
                                                  "1e-320",
                                                  "18446744073709551615",
                                                  "18446744073709551616",
                                                  "9223372036854775808",
                                                  "null",
                                                  "true",
                                                  "\"\"",
                                                  "{}",
                                                  "[]",
                                                  "[[",
                                                  "}",
                                                  "\\u0000",
                                                  "\"a\\nb\"",
                                                  "\x1b",
                                                  "\xff",
                                                  "image",
                                                  "labels",
                                                  "classes",
                                                  " ",
                                                  "\n",
                                                  "__metadata__"};

class Mutation {
 public:
  Mutation(const std::vector<std::string>& corpus, Generator& generator)
      : corpus_{corpus}, generator_{generator}, text_{corpus[below(corpus.size())]} {}

  std::string run() {
    for (std::size_t places = below(2) == 0 ? 1 : 1 + below(8); places > 0; --places) {
      change();
      if (text_.size() > kLongest) text_.resize(kLongest);
    }
    return std::move(text_);
  }

 private:
  /// Less than `end`, or 0.
  std::size_t below(std::size_t end) { return end == 0 ? 0 : generator_() % end; }

  struct Part {
    std::size_t begin;
    std::size_t size;
  };
  /// Most parts are short.
  Part part_of(const std::string& text) {
    const std::size_t begin = below(text.size() + 1);
    const std::size_t longest = below(4) == 0 ? text.size() : 16;
    return {begin, std::min(below(longest + 1), text.size() - begin)};
  }

  void change() {
    switch (below(9)) {
      case 0:
        if (!text_.empty()) text_[below(text_.size())] ^= static_cast<char>(1U << below(8));
        break;
      case 1:
        if (!text_.empty()) text_[below(text_.size())] = static_cast<char>(below(256));
        break;
      case 2: {
        const Part part = part_of(text_);
        text_.erase(part.begin, part.size);
        break;
      }
      case 3:
        insert(text_);
        break;
      case 4:
        insert(corpus_[below(corpus_.size())]);
        break;
      case 5:
        text_.resize(below(text_.size() + 1));
        break;
      case 6:
        text_.insert(below(text_.size() + 1), kWords[below(kWords.size())]);
        break;
      case 7:
        replace_number();
        break;
      default:
        repeat();
    }
  }

  void insert(const std::string& from) {
    const Part part = part_of(from);
    const std::string copy = from.substr(part.begin, part.size);
    text_.insert(below(text_.size() + 1), copy);
  }

  void replace_number() {
    const std::size_t begin = text_.find_first_of("0123456789", below(text_.size() + 1));
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", begin), text_.size());
    constexpr std::size_t kNumbers = 7;  // the words that are numbers come first
    text_.replace(begin, end - begin, kWords[below(kNumbers)]);
  }

  void repeat() {
    if (text_.empty()) return;
    const std::size_t at = below(text_.size());
    text_.insert(at, 1 + below(below(8) == 0 ? 100'000 : 100), text_[at]);
  }

  const std::vector<std::string>& corpus_;
  Generator& generator_;
  std::string text_;
};

}  // namespace

std::string spoilt_input(const std::vector<std::string>& corpus, Generator& generator) {
  if (generator() % 2 == 0) {
    const std::string& text = corpus[generator() % corpus.size()];
    if (auto spoilt = spoilt_json(text, generator)) return *std::move(spoilt);
  }
  return Mutation{corpus, generator}.run();
}

}  // namespace spillway::fuzz
