#include <cstddef>
#include <span>
#include <vector>

#include "src/cuda/ranks/cuda_number_kernels.h"
#include "src/ranks/communicator.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

// Numbers of ranks: what the device makes of them must be what the host does, to the bit.
class NumberSums : public KernelRunner {
 protected:
  [[nodiscard]] static std::vector<float> drawn(std::size_t count, unsigned seed) {
    return host::to_floats(host::random_values(count, seed));
  }
  [[nodiscard]] static float* floats(Block& block) {
    return reinterpret_cast<float*>(block.device.data());
  }
};

// None, one, not whole blocks; and more than there are threads in all.
constexpr std::array<std::size_t, 4> kCounts{0, 1, 1000, 1U << 16U};

TEST_F(NumberSums, AddAsTheHost) {
  for (const std::size_t count : kCounts) {
    std::vector<float> sum = drawn(count + 1, 1);
    const std::vector<float> other = drawn(count + 1, 2);
    Block sums = numbers(sum);
    Block others = numbers(other);
    add_numbers(machine().stream, floats(sums), floats(others), count);
    host_number_kernels().add(std::span{sum}.first(count), std::span{other}.first(count));
    EXPECT_EQ(sums.numbers<float>(), sum);
  }
}

// From the second number on, which is aligned to a float alone.
TEST_F(NumberSums, DivideAsTheHost) {
  for (const std::size_t count : kCounts) {
    std::vector<float> number = drawn(count + 2, 3);
    Block divided = numbers(number);
    divide_numbers(machine().stream, floats(divided) + 1, 7.0F, count);
    host_number_kernels().divide(std::span{number}.subspan(1, count), 7.0F);
    EXPECT_EQ(divided.numbers<float>(), number);
  }
}

TEST_F(NumberSums, FillWhatTheyAreTold) {
  std::vector<float> number = drawn(300, 4);
  Block filled = numbers(number);
  fill_numbers(machine().stream, floats(filled) + 3, -2.5F, 290);
  host_number_kernels().fill(std::span{number}.subspan(3, 290), -2.5F);
  EXPECT_EQ(filled.numbers<float>(), number);
}

}  // namespace
}  // namespace spillway::cuda
