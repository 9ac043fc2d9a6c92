#pragma once

#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Tokens in Llama 2's vocabulary.
inline constexpr std::size_t kLlamaVocabulary = 32000;

/// The sizes of a Llama (Touvron et al., 2023).
struct LlamaSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t width;    ///< channels of a token between layers
  std::size_t hidden;   ///< gates of a block's second half, and also its values
  std::size_t context;  ///< the most tokens of a text
};

/// Llama of any size: RMS norms, rotary positions, grouped queries and SwiGLU, without biases. The
/// loss has its own table. Layers have the names of Hugging Face's files, except that `qkv_proj`
/// concatenates `q_proj`, `k_proj` and `v_proj`, and `gate_up_proj` concatenates `gate_proj` and
/// `up_proj`. Throws: um::Error when `text` does not fit.
[[nodiscard]] Network llama(const std::string& name, const LlamaSizes& sizes, const Shape& text,
                            std::size_t vocabulary);

}  // namespace spillway::nets
