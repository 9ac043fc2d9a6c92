#include "src/io/data/prepared_dataset.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/refusal.h"

namespace spillway {
namespace {

using nets::Shape;

std::vector<float> resized(const std::vector<float>& image, const Shape& from, const Shape& to) {
  std::vector<float> result(to.elements());
  Resize{from, to}(image, result);
  return result;
}

void expect_near(const std::vector<float>& result, const std::vector<float>& expected) {
  ASSERT_EQ(result.size(), expected.size());
  for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-6) << i;
}

TEST(Resize, LeavesTheSameShapeAlone) {
  const Shape shape{.channels = 2, .height = 3, .width = 5};
  std::vector<float> image(shape.elements());
  std::iota(image.begin(), image.end(), 0.0F);
  EXPECT_EQ(resized(image, shape, shape), image);
}

TEST(Resize, GrowsBilinearlyBetweenCentres) {
  // Centres of the four outputs: -0.25 (the edge), 0.25, 0.75, 1.25 (the edge).
  expect_near(resized({0, 1}, {.channels = 1, .width = 2}, {.channels = 1, .width = 4}),
              {0, 0.25, 0.75, 1});
  expect_near(resized({0, 1, 2, 3}, {.channels = 1, .height = 2, .width = 2},
                      {.channels = 1, .height = 4, .width = 2}),
              {0, 1, 0.5, 1.5, 1.5, 2.5, 2, 3});
}

TEST(Resize, AveragesWhenItShrinks) {
  expect_near(resized({0, 1, 2, 3, 10, 11, 12, 13}, {.channels = 1, .height = 2, .width = 4},
                      {.channels = 1, .height = 1, .width = 2}),
              {5.5, 7.5});  // (0 + 1 + 10 + 11) / 4, (2 + 3 + 12 + 13) / 4
}

TEST(Resize, WeighsInputsThatLieInTwoOutputs) {
  // Each output covers 1.5 inputs: (0 + 3 / 2) / 1.5 and (3 / 2 + 9) / 1.5.
  expect_near(resized({0, 3, 9}, {.channels = 1, .width = 3}, {.channels = 1, .width = 2}), {1, 7});
}

TEST(Resize, KeepsAConstantImageConstant) {
  const Shape from{.channels = 1, .height = 8, .width = 8};
  const std::vector<float> image(from.elements(), 0.75F);
  for (const std::size_t side : {1U, 5U, 7U, 13U, 28U}) {
    const Shape to{.channels = 1, .height = side, .width = 2 * side};
    expect_near(resized(image, from, to), std::vector<float>(to.elements(), 0.75F));
  }
}

TEST(Resize, RepeatsAGreyImageInEveryChannel) {
  expect_near(resized({1, 2}, {.channels = 1, .width = 2}, {.channels = 3, .width = 2}),
              {1, 2, 1, 2, 1, 2});
}

TEST(Resize, TurnsColoursIntoLuminance) {
  expect_near(resized({1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, {.channels = 3, .width = 4},
                      {.channels = 1, .width = 4}),
              {0.299F + 0, 0, 0.587F, 0.114F});
}

TEST(Resize, RefusesChannelsItHasNoRuleFor) {
  EXPECT_EQ(test::refusal([] {
              Resize{{.channels = 3}, {.channels = 4}};
            }),
            "images of 3 channels cannot become images of 4; choose a network image of 3 channels");
}

}  // namespace
}  // namespace spillway
