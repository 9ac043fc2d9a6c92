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

/// A layer in a network file, without its name and inputs.
struct LayerText {
  std::string kind;  ///< "convolution"
  std::vector<LayerParameter> parameters;
};

/// Returns the text of `layer`, without parameters that have the default of layer.h. `twin` is the
/// same layer in the same network with another number of classes. A whole number that differs from
/// `twin` is the number of classes, and is written as the word `classes`.
[[nodiscard]] LayerText to_text(const Layer& layer, const Layer& twin);

/// Returns the layer of `text`, with `classes` for the word `classes`. `name` is used in messages
/// only. Throws: um::Error that names the layer, the parameter and its allowed values.
[[nodiscard]] Layer to_layer(const std::string& name, const LayerText& text, std::size_t classes);

/// Returns `word` in quotes for a message, shortened if it is long.
[[nodiscard]] std::string quoted_start(const std::string& word);

}  // namespace spillway::nets
