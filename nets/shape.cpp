#include "nets/shape.h"

namespace spillway::nets {

std::string to_string(const Shape& shape) {
  const std::string tokens = std::to_string(shape.height) + " tokens";
  if (shape.form == Form::kTokens) return tokens;
  if (shape.form == Form::kSequence) return tokens + " of " + std::to_string(shape.channels);
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width);
}

}  // namespace spillway::nets
