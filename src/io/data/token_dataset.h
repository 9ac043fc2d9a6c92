#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/io/data/dataset.h"
#include "src/io/text/token_file.h"

namespace spillway {

/// How tokens are hidden, and which, as Devlin et al., 2018, section 3.1 do: 15 % of the places of
/// a window, at least one. Of these, 8 in 10 show the mask instead of their token, 1 in 10 a drawn
/// token, and 1 in 10 their own.
struct Masking {
  std::int32_t mask = 0;
  std::size_t vocabulary = 0;
  std::uint64_t seed = 0;
};

/// The mask of a vocabulary: 103 in BERT's, which has 30,522 tokens, else the last one.
[[nodiscard]] std::int32_t mask_of(std::size_t vocabulary);

/// Hides tokens of window `index`; which ones, and how, is a function of that and the seed alone.
void hide_tokens(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens);

/// Leaves the tokens of window `index` that hide_tokens() hides, and makes the others -1.
void keep_hidden(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens);

/// What is learnt from a text.
struct TokenTask {
  std::size_t length = 0;  ///< tokens of a window
  std::size_t vocabulary = 0;
  Objective objective = Objective::kNextToken;
  std::uint64_t seed = 0;  ///< of what is hidden, and of where windows begin
  std::int32_t mask = 0;   ///< of masked tokens
};

/// Tokens that a window takes from its text: one more where the next one is learnt.
[[nodiscard]] std::size_t tokens_of_window(const TokenTask& task);

/// Windows of a text: the "image" is the tokens' numbers, and each token has a label, which is
/// negative where it is not learnt.
class TokenDataset : public Dataset {
 public:
  /// Requires: windows of at least one token, a vocabulary of 1 to 2^24.
  explicit TokenDataset(const TokenTask& task);

  [[nodiscard]] nets::Shape image() const override { return nets::tokens(task_.length); }
  [[nodiscard]] std::size_t classes() const override { return task_.vocabulary; }
  void read(std::size_t index, std::span<float> image) const override;
  /// A text has no label as a whole.
  [[nodiscard]] std::int32_t label(std::size_t /*index*/) const override { return -1; }
  [[nodiscard]] bool labels_pixels() const override { return true; }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override;

 protected:
  [[nodiscard]] const TokenTask& task() const { return task_; }
  /// All of the task, for a digest.
  [[nodiscard]] std::string described_task() const;

 private:
  /// Writes the tokens of window `index`, tokens_of_window() or the first ones of them.
  virtual void read_window(std::size_t index, std::span<std::int32_t> tokens) const = 0;
  [[nodiscard]] Masking masking() const;

  TokenTask task_;
};

/// Windows of a text, one behind the other. What is over where all whole windows are cut is in part
/// before the first one: the windows to learn from begin where the seed says.
///
/// The windows to test on are of the last tenth of the text, or of one window where that is more.
/// Throws: um::Error when there are too few tokens to learn from and to test on.
[[nodiscard]] DatasetPair cut_windows(std::unique_ptr<TokenSequence> text, const TokenTask& task);
/// Likewise, with a text to learn from and another to test on.
[[nodiscard]] DatasetPair cut_windows(std::unique_ptr<TokenSequence> train,
                                      std::unique_ptr<TokenSequence> test, const TokenTask& task);

}  // namespace spillway
