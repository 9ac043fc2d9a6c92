#pragma once

#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Tokens in GPT-2's vocabulary.
inline constexpr std::size_t kGptVocabulary = 50257;

/// The sizes of a GPT-2 (Radford et al., 2019).
struct GptSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;    ///< channels of a token between layers
  std::size_t context;  ///< trained positions: the most tokens of a text
};

/// GPT-2 of any size, with the layer names of Hugging Face's files. The loss shares the embedding's
/// table. Throws: um::Error when `text`, the tokens of a sample, does not fit.
[[nodiscard]] Network gpt(const std::string& name, const GptSizes& sizes, const Shape& text,
                          std::size_t vocabulary);

[[nodiscard]] Network gpt2(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_medium(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_large(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_xl(const Shape& text, std::size_t vocabulary);

/// Throws: um::Error that names the network unless `heads` divides `width`.
void expect_divided(const std::string& network, std::size_t width, std::size_t heads);

}  // namespace spillway::nets
