#include "nets/families/divided_width.h"

#include "um/error.h"

namespace spillway::nets {

void expect_divided(const std::string& network, std::size_t width, std::size_t heads) {
  if (width % heads == 0) return;
  throw um::Error{"network " + network + " cannot divide a width of " + std::to_string(width) +
                  " among " + std::to_string(heads) + " heads"};
}

}  // namespace spillway::nets
