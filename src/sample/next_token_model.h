#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/network.h"
#include "src/ops/backend.h"
#include "src/train/state.h"

namespace spillway {

/// Why `network` cannot say what follows a text: a part of a sentence that begins behind "the
/// network"; empty where it can. It can where it reads tokens, none of which sees those behind it,
/// and ends with a loss over a vocabulary.
[[nodiscard]] std::string why_no_next_token(const nets::Network& network);

/// A network of texts, all in near memory, that says what it expects behind a text. Each text goes
/// forward as a whole, in the shortest of a few steps that is long enough: nothing is kept of the
/// text before it.
///
/// Thread safety: none.
class NextTokenModel {
 public:
  /// The weights are zero at first. `context` outlives it. When `stop` is requested, logits()
  /// throws Interrupted. Requires: why_no_next_token() of the entry's network is empty.
  /// Throws: um::OutOfMemory.
  NextTokenModel(ExecutionContext& context, const nets::CatalogueEntry& network,
                 std::stop_token stop = {});
  NextTokenModel(const NextTokenModel&) = delete;
  NextTokenModel& operator=(const NextTokenModel&) = delete;
  ~NextTokenModel();

  [[nodiscard]] State& state() { return *state_; }
  [[nodiscard]] std::size_t vocabulary() const { return network_.classes(); }
  /// The most tokens that it looks at.
  [[nodiscard]] std::size_t longest() const { return network_.input().height; }

  /// What it expects behind the last of `tokens`, a logit for each token of the vocabulary. They
  /// stay as they are until the next call. Requires: 1 to longest() tokens of the vocabulary.
  /// Throws: um::Error; um::OutOfMemory; Interrupted, after which only destruction is allowed.
  [[nodiscard]] std::span<const float> logits(std::span<const std::int32_t> tokens);

 private:
  class Runner;  // of texts of up to some length

  [[nodiscard]] std::size_t length_for(std::size_t tokens) const;
  [[nodiscard]] nets::Network of_length(std::size_t tokens) const;

  ExecutionContext& context_;
  nets::CatalogueEntry entry_;
  std::stop_token stop_;
  nets::Network network_;
  bool takes_shorter_;  // texts, with the same parameters
  std::unique_ptr<State> state_;
  std::unique_ptr<Runner> runner_;
  std::vector<float> logits_;
};

}  // namespace spillway
