#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

struct CropCase {
  TensorShape x;
  nets::Extent window;
  nets::Extent offset;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const CropCase& c, std::ostream* out) {
  PrintTo(c.x, out);
  *out << " to " << c.window.height << 'x' << c.window.width << " at " << c.offset.height << 'x'
       << c.offset.width;
}

class Crop : public KernelRunner, public ::testing::WithParamInterface<CropCase> {
 protected:
  // Calls visit(place in y, place in x).
  template <class Visit>
  void for_each_pixel(const Visit& visit) const {
    for (std::size_t n = 0; n < y_.batch; ++n) {
      for (std::size_t c = 0; c < y_.image.channels; ++c) {
        for (std::size_t h = 0; h < y_.image.height; ++h) {
          for (std::size_t w = 0; w < y_.image.width; ++w) {
            visit(place(y_, n, c, h, w), place(x_, n, c, h + offset_.height, w + offset_.width));
          }
        }
      }
    }
  }

  const TensorShape x_ = GetParam().x;
  const nets::Extent offset_ = GetParam().offset;
  const TensorShape y_{x_.batch,
                       {x_.image.channels, GetParam().window.height, GetParam().window.width}};
};

TEST_P(Crop, ForwardCopiesTheWindow) {
  const Values values_of_x = random_values(x_.elements(), 1);
  Block x = tensor(x_, values_of_x);
  Block y = tensor(y_);
  run(CropForward{.x = x_, .y = y_, .offset = offset_}, {&x, &y});
  Values expected(y_.elements());
  for_each_pixel([&](std::size_t to, std::size_t from) { expected[to] = values_of_x[from]; });
  expect_near(values(y_, y), expected, 0);
}

TEST_P(Crop, BackwardPutsItBackAmongZeros) {
  const Values values_of_dy = random_values(y_.elements(), 2);
  Block dy = tensor(y_, values_of_dy);
  Block dx = tensor(x_);
  run(CropBackward{.x = x_, .y = y_, .offset = offset_}, {&dy, &dx});
  Values expected(x_.elements(), 0.0);
  for_each_pixel([&](std::size_t from, std::size_t to) { expected[to] = values_of_dy[from]; });
  expect_near(values(x_, dx), expected, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Crop,
    ::testing::Values(CropCase{{3, {21, 7, 9}}, {4, 5}, {2, 3}},
                      CropCase{{2, {3, 6, 5}}, {6, 1}, {0, 4}},  // dense, the last
                      CropCase{{1, {2, 5, 5}}, {3, 3}, {1, 1}},
                      CropCase{{2, {16, 4, 3}}, {4, 3}, {0, 0}}));  // all of it

}  // namespace
}  // namespace spillway::test
