#pragma once

#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Tokens of Llama 2's vocabulary.
inline constexpr std::size_t kLlamaVocabulary = 32000;

/// The sizes of a Llama (Touvron et al., 2023).
struct LlamaSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t width;    ///< numbers of a token between layers
  std::size_t hidden;   ///< gates, and as many values, of a block's second half
  std::size_t context;  ///< the most tokens of a text
};

/// A Llama of any sizes: RMS norms, rotary positions, grouped queries and SwiGLU, without biases;
/// its loss has a table of its own. Layers have the names of Hugging Face's files, but that
/// `qkv_proj` is the three of `q_proj`, `k_proj` and `v_proj`, one after the other, and
/// `gate_up_proj` the two of `gate_proj` and `up_proj`. Throws: um::Error where `text` does not
/// fit.
[[nodiscard]] Network llama(const std::string& name, const LlamaSizes& sizes, const Shape& text,
                            std::size_t vocabulary);

}  // namespace spillway::nets
