#pragma once

#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Tokens of GPT-2's vocabulary.
inline constexpr std::size_t kGptVocabulary = 50257;

/// The sizes of a GPT-2 (Radford et al., 2019).
struct GptSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;    ///< numbers of a token between layers
  std::size_t context;  ///< positions that are trained: the most tokens of a text
};

/// A GPT-2 of any sizes, by the names of Hugging Face's files; its table is that of the loss.
/// `text` are tokens, as many as a sample has. Throws: um::Error where they do not fit.
[[nodiscard]] Network gpt(const std::string& name, const GptSizes& sizes, const Shape& text,
                          std::size_t vocabulary);

[[nodiscard]] Network gpt2(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_medium(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_large(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_xl(const Shape& text, std::size_t vocabulary);

/// Throws: um::Error that names the network where its heads do not divide the numbers of a token.
void expect_divided(const std::string& network, std::size_t width, std::size_t heads);

}  // namespace spillway::nets
