#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace spillway
