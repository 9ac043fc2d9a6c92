#include "src/cuda/layout/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace spillway::cuda {
namespace {

constexpr Layout kFloats{Precision::kFp32};
constexpr Layout kHalves{Precision::kBf16};

TEST(CudaLayout, PadsChannelsToMultiplesOfEight) {
  EXPECT_EQ(Layout::padded(1), 8U);
  EXPECT_EQ(Layout::padded(8), 8U);
  EXPECT_EQ(Layout::padded(9), 16U);
}

// 2 x 5 x 7 pixels of 3 channels, padded to 8: 560 elements.
TEST(CudaLayout, CountsPaddingAndTheBytesOfAnElement) {
  const TensorShape images{2, {3, 5, 7}};
  EXPECT_EQ(Layout::elements(images), 560U);
  EXPECT_EQ(kFloats.tensor_bytes(images), um::Bytes{2240});
  EXPECT_EQ(Layout{Precision::kTf32}.tensor_bytes(images), um::Bytes{2240});
  EXPECT_EQ(kHalves.tensor_bytes(images), um::Bytes{1120});
  EXPECT_EQ(kHalves.tensor_bytes({0, {3, 5, 7}}), um::Bytes{});
}

TEST(CudaLayout, PutsTheChannelsOfAPixelNextToEachOther) {
  const nets::Shape image{10, 4, 5};  // 16 with padding
  EXPECT_EQ(Layout::index(image, 0, 0, 0), 0U);
  EXPECT_EQ(Layout::index(image, 9, 0, 0), 9U);
  EXPECT_EQ(Layout::index(image, 0, 0, 1), 16U);
  EXPECT_EQ(Layout::index(image, 3, 2, 1), (2 * 5 + 1) * 16 + 3U);
}

TEST(CudaLayout, HasStridesThatLeadToEachElement) {
  const TensorShape shape{3, {10, 4, 5}};
  const Layout::Strides strides = Layout::strides(shape);
  EXPECT_EQ(strides, (Layout::Strides{.batch = 320, .channel = 1, .row = 80, .column = 16}));
  EXPECT_EQ(2 * strides.row + 3 * strides.column + 7 * strides.channel,
            Layout::index(shape.image, 7, 2, 3));
}

TEST(CudaLayout, GivesEveryElementAPlaceOfItsOwn) {
  const nets::Shape image{11, 3, 5};
  std::set<std::size_t> places;
  for (std::size_t c = 0; c < Layout::padded(image.channels); ++c) {
    for (std::size_t h = 0; h < image.height; ++h) {
      for (std::size_t w = 0; w < image.width; ++w) places.insert(Layout::index(image, c, h, w));
    }
  }
  EXPECT_EQ(places.size(), Layout::elements({1, image}));
  EXPECT_EQ(*places.rbegin() + 1, places.size());
}

}  // namespace
}  // namespace spillway::cuda
