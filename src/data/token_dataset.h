#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/data/dataset.h"
#include "src/data/masking.h"
#include "src/data/objective.h"

namespace spillway {

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

}  // namespace spillway
