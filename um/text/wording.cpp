#include "um/text/wording.h"

#include <array>
#include <charconv>

namespace spillway::um {

double shortest_decimal(float value) {
  std::array<char, 32> text{};  // enough for any float
  const std::to_chars_result written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = 0;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

}  // namespace spillway::um
