#pragma once

#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Tokens in the vocabulary of uncased BERT.
inline constexpr std::size_t kBertVocabulary = 30522;

/// BERT with its masked-language head (Devlin et al., 2018). Layers have the names of Hugging
/// Face's files, except that `self.qkv` concatenates `query`, `key` and `value`. All text is in the
/// first segment. Throws: um::Error when `text`, the tokens of a sample, does not fit.
[[nodiscard]] Network bert_base(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network bert_large(const Shape& text, std::size_t vocabulary);

/// The sizes of a BERT.
struct BertSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;
  std::size_t context = 512;  ///< trained positions
};

/// BERT of any size.
[[nodiscard]] Network bert(const std::string& name, const BertSizes& sizes, const Shape& text,
                           std::size_t vocabulary);

}  // namespace spillway::nets
