#include "src/io/data/token_dataset.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/io/file_digest.h"
#include "src/io/random.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kVocabularyOfBert = 30'522;
constexpr std::int32_t kMaskOfBert = 103;
constexpr std::uint64_t kKinds = 1;  // separates these draws from those of places

// Calls `visit` with each place of window `index` that is hidden.
template <typename Visit>
void for_each_hidden(const Masking& masking, std::size_t index, std::size_t length, Visit visit) {
  const std::size_t count = std::max<std::size_t>(1, (15 * length + 50) / 100);
  const Permutation places{length, masking.seed, index};
  for (std::size_t i = 0; i < count; ++i) visit(places(i));
}

// Tokens `first` to `first` + `size` of a text.
struct TextPart {
  std::uint64_t first;
  std::uint64_t size;
};

// Number of tokens of a window that overlap the next window.
std::uint64_t tokens_beside_windows(const TokenTask& task) {
  return tokens_of_window(task) - task.length;
}

class TextWindows final : public TokenDataset {
 public:
  /// The text is shared, as both parts of a file are data sets.
  TextWindows(std::shared_ptr<const TokenSequence> text, const TextPart& part,
              const TokenTask& task, bool is_shifted)
      : TokenDataset{task}, text_{std::move(text)}, part_{part} {
    const std::uint64_t usable = part.size - tokens_beside_windows(task);
    size_ = usable / task.length;
    const std::uint64_t rest = usable % task.length;
    if (is_shifted) offset_ = Random{task.seed, part.size}.next() % (rest + 1);
  }

  [[nodiscard]] std::string name() const override { return text_->name(); }
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::string content_sha256() const override {
    return sha256_of(text_->content_sha256() + ' ' + std::to_string(part_.first) + " + " +
                     std::to_string(part_.size) + " from " + std::to_string(offset_) + ": " +
                     described_task());
  }

 private:
  void read_window(std::size_t index, std::span<std::int32_t> tokens) const override {
    text_->read(part_.first + offset_ + std::uint64_t{index} * task().length, tokens);
  }

  std::shared_ptr<const TokenSequence> text_;
  TextPart part_;
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
};

void expect_tokens(const TokenSequence& text, std::uint64_t needed, const std::string& use,
                   const TokenTask& task) {
  if (text.size() >= needed) return;
  throw um::Error{text.file() + " has " + std::to_string(text.size()) + " tokens, but " + use +
                  " of " + std::to_string(task.length) + " needs " + std::to_string(needed) +
                  "; use a longer text or a smaller --sequence-length"};
}

}  // namespace

std::int32_t mask_of(std::size_t vocabulary) {
  return vocabulary == kVocabularyOfBert ? kMaskOfBert : static_cast<std::int32_t>(vocabulary - 1);
}

void hide_tokens(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens) {
  Random random{masking.seed, index, kKinds};
  for_each_hidden(masking, index, tokens.size(), [&](std::size_t place) {
    const std::uint64_t kind = random.next() % 10;
    const std::uint64_t drawn = random.next() % masking.vocabulary;
    if (kind < 8) tokens[place] = masking.mask;
    if (kind == 8) tokens[place] = static_cast<std::int32_t>(drawn);
  });
}

void keep_hidden(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens) {
  std::vector<std::int32_t> labels(tokens.size(), -1);
  for_each_hidden(masking, index, tokens.size(),
                  [&](std::size_t place) { labels[place] = tokens[place]; });
  std::ranges::copy(labels, tokens.begin());
}

std::size_t tokens_of_window(const TokenTask& task) {
  return task.length + (task.objective == Objective::kNextToken ? 1 : 0);
}

TokenDataset::TokenDataset(const TokenTask& task) : task_{task} {
  um::expects(task.length > 0, "windows of tokens");
  um::expects(task.vocabulary > 0 && task.vocabulary <= kLargestVocabulary,
              "tokens that are exact as floats");
}

void TokenDataset::read(std::size_t index, std::span<float> image) const {
  um::expects(index < size() && image.size() == task_.length, "a window and room for it");
  std::vector<std::int32_t> tokens(task_.length);
  read_window(index, tokens);
  if (task_.objective == Objective::kMaskedTokens) hide_tokens(masking(), index, tokens);
  std::ranges::transform(tokens, image.begin(),
                         [](std::int32_t token) { return static_cast<float>(token); });
}

void TokenDataset::labels(std::size_t index, std::span<std::int32_t> labels) const {
  um::expects(index < size() && labels.size() == task_.length, "a window and room for its labels");
  if (task_.objective == Objective::kMaskedTokens) {
    read_window(index, labels);
    keep_hidden(masking(), index, labels);
    return;
  }
  std::vector<std::int32_t> tokens(task_.length + 1);
  read_window(index, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), labels.begin());
}

std::string TokenDataset::described_task() const {
  return std::to_string(task_.length) + " tokens of a vocabulary of " +
         std::to_string(task_.vocabulary) + ", seed " + std::to_string(task_.seed) +
         (task_.objective == Objective::kNextToken ? ", next"
                                                   : ", mask " + std::to_string(task_.mask));
}

Masking TokenDataset::masking() const {
  return {.mask = task_.mask, .vocabulary = task_.vocabulary, .seed = task_.seed};
}

DatasetPair cut_windows(std::unique_ptr<TokenSequence> text, const TokenTask& task) {
  const std::uint64_t least = tokens_of_window(task);
  expect_tokens(*text, 2 * least, "one window to learn from and one to test on", task);
  const std::shared_ptr<const TokenSequence> shared = std::move(text);
  const std::uint64_t held_out = std::max(least, shared->size() / 10);
  const std::uint64_t rest = shared->size() - held_out;
  return {.train = std::make_unique<TextWindows>(shared, TextPart{0, rest}, task, true),
          .test = std::make_unique<TextWindows>(shared, TextPart{rest, held_out}, task, false)};
}

DatasetPair cut_windows(std::unique_ptr<TokenSequence> train, std::unique_ptr<TokenSequence> test,
                        const TokenTask& task) {
  expect_tokens(*train, tokens_of_window(task), "a window to learn from", task);
  expect_tokens(*test, tokens_of_window(task), "a window to test on", task);
  const TextPart all{0, train->size()};
  const TextPart all_of_test{0, test->size()};
  return {.train = std::make_unique<TextWindows>(std::move(train), all, task, true),
          .test = std::make_unique<TextWindows>(std::move(test), all_of_test, task, false)};
}

}  // namespace spillway
