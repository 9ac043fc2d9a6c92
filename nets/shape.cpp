#include "nets/shape.h"

namespace spillway::nets {

std::string to_string(const Shape& shape) {
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width);
}

}  // namespace spillway::nets
