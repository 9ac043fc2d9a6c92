#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nets/layer.h"
#include "nets/layer_kinds.h"

namespace spillway::nets {

/// "kernel=3" in a network file.
struct LayerParameter {
  std::string word;
  std::string value;
};

/// What a network file says of a layer, but for its name and what it reads.
struct LayerText {
  std::string kind;  ///< "convolution"
  std::vector<LayerParameter> parameters;
};

/// The words for `layer`, without the parameters that have the default of layer.h. `twin` is the
/// same layer of the same network with another number of classes: a whole number in which the two
/// differ is the number of classes, and written as the word `classes`.
[[nodiscard]] LayerText to_text(const Layer& layer, const Layer& twin);

/// The layer that `text` says, with `classes` for the word. `name` is only for the sentence.
/// Throws: um::Error that names the layer, the parameter and what it may be.
[[nodiscard]] Layer to_layer(const std::string& name, const LayerText& text, std::size_t classes);

/// `word` in quotes, cut where it is long, for sentences.
[[nodiscard]] std::string quoted(const std::string& word);

}  // namespace spillway::nets
