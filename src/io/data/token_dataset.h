#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/io/data/dataset.h"
#include "src/io/text/token_file.h"

namespace spillway {

/// How tokens are hidden (Devlin et al., 2018, section 3.1): 15 % of a window's places, at least
/// one. Of these, 8 in 10 show the mask, 1 in 10 a random token, and 1 in 10 their own token.
struct Masking {
  std::int32_t mask = 0;
  std::size_t vocabulary = 0;
  std::uint64_t seed = 0;
};

/// Mask token of a vocabulary: 103 for BERT's 30,522 tokens, otherwise the last token.
[[nodiscard]] std::int32_t mask_of(std::size_t vocabulary);

/// Hides tokens of window `index`. Places and replacements depend only on `index` and the seed.
void hide_tokens(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens);

/// Keeps the tokens of window `index` that hide_tokens() hides, and sets the others to -1.
void keep_hidden(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens);

/// The task that a network learns from a text.
struct TokenTask {
  std::size_t length = 0;  ///< tokens of a window
  std::size_t vocabulary = 0;
  Objective objective = Objective::kNextToken;
  std::uint64_t seed = 0;  ///< for the choice of hidden tokens and the start of the windows
  std::int32_t mask = 0;   ///< the token that hides others
};

/// Number of tokens a window takes from its text: one more for next-token prediction.
[[nodiscard]] std::size_t tokens_of_window(const TokenTask& task);

/// Windows of a text. The "image" is the tokens' numbers. Each token has a label, negative where
/// the token is not learnt.
class TokenDataset : public Dataset {
 public:
  /// Requires: windows of at least one token; a vocabulary of 1 to 2^24.
  explicit TokenDataset(const TokenTask& task);

  [[nodiscard]] nets::Shape image() const override { return nets::tokens(task_.length); }
  [[nodiscard]] std::size_t classes() const override { return task_.vocabulary; }
  void read(std::size_t index, std::span<float> image) const override;
  /// A text has only labels of tokens.
  [[nodiscard]] std::int32_t label(std::size_t /*index*/) const override { return -1; }
  [[nodiscard]] bool labels_pixels() const override { return true; }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override;

 protected:
  [[nodiscard]] const TokenTask& task() const { return task_; }
  /// Describes the whole task, for a digest.
  [[nodiscard]] std::string described_task() const;

 private:
  /// Writes tokens of window `index`: all tokens_of_window(), or as many as fit.
  virtual void read_window(std::size_t index, std::span<std::int32_t> tokens) const = 0;
  [[nodiscard]] Masking masking() const;

  TokenTask task_;
};

/// Cuts a text into consecutive windows. The seed decides where the first training window begins,
/// within the tokens that do not fill a window.
/// Test windows cover the last tenth of the text, at least one window.
/// Throws: um::Error when there are too few tokens for training and testing.
[[nodiscard]] DatasetPair cut_windows(std::unique_ptr<TokenSequence> text, const TokenTask& task);
/// Does the same with separate texts for training and testing.
[[nodiscard]] DatasetPair cut_windows(std::unique_ptr<TokenSequence> train,
                                      std::unique_ptr<TokenSequence> test, const TokenTask& task);

}  // namespace spillway
