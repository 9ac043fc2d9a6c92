#include "src/data/text_windows.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "src/data/random/random.h"
#include "src/files/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

// Tokens `first` to `first` + `size` of a text.
struct Part {
  std::uint64_t first;
  std::uint64_t size;
};

// Tokens that windows share with none before them.
std::uint64_t tokens_beside_windows(const TokenTask& task) {
  return tokens_of_window(task) - task.length;
}

class TextWindows final : public TokenDataset {
 public:
  /// The text is shared: parts of one file are two data sets.
  TextWindows(std::shared_ptr<const TokenSequence> text, const Part& part, const TokenTask& task,
              bool is_shifted)
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
  Part part_;
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

DatasetPair cut_windows(std::unique_ptr<TokenSequence> text, const TokenTask& task) {
  const std::uint64_t least = tokens_of_window(task);
  expect_tokens(*text, 2 * least, "one window to learn from and one to test on", task);
  const std::shared_ptr<const TokenSequence> shared = std::move(text);
  const std::uint64_t held_out = std::max(least, shared->size() / 10);
  const std::uint64_t rest = shared->size() - held_out;
  return {.train = std::make_unique<TextWindows>(shared, Part{0, rest}, task, true),
          .test = std::make_unique<TextWindows>(shared, Part{rest, held_out}, task, false)};
}

DatasetPair cut_windows(std::unique_ptr<TokenSequence> train, std::unique_ptr<TokenSequence> test,
                        const TokenTask& task) {
  expect_tokens(*train, tokens_of_window(task), "a window to learn from", task);
  expect_tokens(*test, tokens_of_window(task), "a window to test on", task);
  const Part all{0, train->size()};
  const Part all_of_test{0, test->size()};
  return {.train = std::make_unique<TextWindows>(std::move(train), all, task, true),
          .test = std::make_unique<TextWindows>(std::move(test), all_of_test, task, false)};
}

}  // namespace spillway
