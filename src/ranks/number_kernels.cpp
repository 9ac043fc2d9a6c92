#include "src/ranks/number_kernels.h"

#include <algorithm>
#include <cstring>

namespace spillway {
namespace {

class HostNumberKernels final : public NumberKernels {
 public:
  void add(std::span<float> to, std::span<const float> numbers) const override {
    add_floats(to.data(), numbers.data(), to.size());
  }
  void copy(std::span<float> to, std::span<const float> from) const override {
    if (to.data() != from.data() && !to.empty()) {
      std::memcpy(to.data(), from.data(), to.size_bytes());
    }
  }
  void divide(std::span<float> numbers, float by) const override {
    for (float& number : numbers) number /= by;
  }
  void fill(std::span<float> numbers, float value) const override {
    std::ranges::fill(numbers, value);
  }

 private:
  static void add_floats(float* __restrict to, const float* __restrict numbers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] += numbers[i];
  }
};

}  // namespace

const NumberKernels& host_number_kernels() {
  static const HostNumberKernels kernels;
  return kernels;
}

}  // namespace spillway
