#pragma once

#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// The sizes of a vision transformer (Dosovitskiy et al., 2020).
struct VitSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;
  std::size_t patch = 16;  ///< height and width of what becomes a token
};

/// One of any sizes, by the names of Hugging Face's files, but that `attention.qkv` is the three of
/// `query`, `key` and `value`, one after the other. The class is told from the first token, which
/// is no patch. Throws: um::Error where the image holds no patch.
[[nodiscard]] Network vit(const std::string& name, const VitSizes& sizes, const Shape& image,
                          std::size_t classes);

[[nodiscard]] Network vit_b16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vit_l16(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
