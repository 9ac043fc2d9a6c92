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
#include "src/train/checkpoint/state.h"

namespace spillway {

/// Returns why `network` cannot predict the next token, as a part of a sentence that begins with
/// "the network"; empty if it can. It can if it reads tokens, is causal and ends with a loss over a
/// vocabulary.
[[nodiscard]] std::string why_no_next_token(const nets::Network& network);

/// A network of texts, resident in near memory, that predicts the next token. Each text goes
/// forward as a whole, in the shortest of a few steps that is long enough; nothing is cached
/// between texts.
///
/// Thread safety: none.
class NextTokenModel {
 public:
  /// Sets the weights to zero. `context` must outlive the model. When `stop` is requested, logits()
  /// throws Interrupted. Requires: why_no_next_token() of the entry's network is empty.
  /// Throws: um::OutOfMemory.
  NextTokenModel(ExecutionContext& context, const nets::CatalogueEntry& network,
                 std::stop_token stop = {});
  NextTokenModel(const NextTokenModel&) = delete;
  NextTokenModel& operator=(const NextTokenModel&) = delete;
  ~NextTokenModel();

  [[nodiscard]] State& state() { return *state_; }
  [[nodiscard]] std::size_t vocabulary() const { return network_.classes(); }
  /// Returns the context length in tokens.
  [[nodiscard]] std::size_t longest() const { return network_.input().height; }

  /// Returns a logit per token of the vocabulary for what follows `tokens`, valid until the next
  /// call. Requires: 1 to longest() tokens of the vocabulary. Throws: um::Error; um::OutOfMemory;
  /// Interrupted, after which only destruction is allowed.
  [[nodiscard]] std::span<const float> logits(std::span<const std::int32_t> tokens);

 private:
  class Runner;  // a step for texts up to some length

  [[nodiscard]] std::size_t length_for(std::size_t tokens) const;
  [[nodiscard]] nets::Network of_length(std::size_t tokens) const;

  ExecutionContext& context_;
  nets::CatalogueEntry entry_;
  std::stop_token stop_;
  nets::Network network_;
  bool takes_shorter_;  // same parameters for shorter texts
  std::unique_ptr<State> state_;
  std::unique_ptr<Runner> runner_;
  std::vector<float> logits_;
};

}  // namespace spillway
