#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/data/synthetic.h"
#include "src/data/token_dataset.h"

namespace spillway {

/// Drawn text of a language that can be learnt: a Markov chain over at most 64 tokens, spread over
/// the vocabulary. Behind each token come four others, drawn once from the seed, with probabilities
/// 1/2, 1/4, 1/8 and 1/8: who knows the chain has a loss of at most 7/4 ln 2 = 1.21 a token, with
/// less where some of the four are the same. The chain never makes the mask. Window `index` is a
/// function of the seed, the split and `index` alone.
class SyntheticText final : public TokenDataset {
 public:
  /// Requires: size >= 1; a vocabulary of at least two.
  SyntheticText(const TokenTask& task, std::size_t size, Split split);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::string content_sha256() const override;

 private:
  void read_window(std::size_t index, std::span<std::int32_t> tokens) const override;

  std::size_t size_;
  Split split_;
  std::size_t symbols_;  // of the chain
  std::size_t stride_;   // from the token of one to that of the next
};

/// Windows to learn from and to test on.
inline constexpr std::size_t kSyntheticTrainTexts = 50'000;
inline constexpr std::size_t kSyntheticTestTexts = 200;
[[nodiscard]] DatasetPair make_synthetic_text(const TokenTask& task);

}  // namespace spillway
