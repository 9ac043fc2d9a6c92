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
  std::size_t patch = 16;  ///< height and width of a patch, which becomes a token
};

/// Vision transformer of any size, with the layer names of Hugging Face's files, except that
/// `attention.qkv` concatenates `query`, `key` and `value`. Classifies by the first token, which is
/// not a patch. Throws: um::Error when the image is smaller than a patch.
[[nodiscard]] Network vit(const std::string& name, const VitSizes& sizes, const Shape& image,
                          std::size_t classes);

[[nodiscard]] Network vit_b16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vit_l16(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
