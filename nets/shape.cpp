#include "nets/shape.h"

namespace spillway::nets {

std::string to_string(const Shape& shape) {
  if (shape.form == Form::kTokens) return std::to_string(shape.height) + " tokens";
  if (shape.form == Form::kSequence) {
    return std::to_string(shape.height) + " tokens of " + std::to_string(shape.channels);
  }
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width);
}

}  // namespace spillway::nets
