#include "src/data/images/byte_images.h"

#include "src/numbers/byte_numbers.h"

namespace spillway {

std::vector<float> unit_numbers(std::size_t channels) {
  std::vector<float> numbers(channels * kByteValues);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i % kByteValues) / 255.0F;
  }
  return numbers;
}

}  // namespace spillway
