#include "src/cuda/layout/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory_resource>
#include <set>
#include <tuple>
#include <vector>

#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/staged_batch.h"
#include "src/ops/tensor.h"
#include "tests/src/printed_parameters.h"
#include "um/error.h"

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

// Returns 1, 1.001, 1.002 ...: all different, not zero, and mostly not exact in bfloat16.
std::vector<float> some_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 1 + 0.001F * static_cast<float>(i);
  return values;
}

// A block that import_block() has written over other bytes.
class Imported {
 public:
  Imported(Precision precision, const ParameterSpec& spec, const std::vector<float>& values)
      : layout{precision, spec}, bytes(layout.bytes().count(), std::byte{0xFF}) {
    import_block(precision, spec, values, bytes);
  }

  [[nodiscard]] std::vector<float> floats() const {
    std::vector<float> result(layout.float_count());
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(float));
    return result;
  }
  [[nodiscard]] float float_at(um::Bytes part, std::size_t i) const {
    float value = 0;
    std::memcpy(&value, bytes.data() + part.count() + i * sizeof(float), sizeof value);
    return value;
  }
  [[nodiscard]] Bfloat16 copy_at(um::Bytes part, std::size_t i) const {
    Bfloat16 value;
    std::memcpy(&value, bytes.data() + part.count() + i * sizeof value, sizeof value);
    return value;
  }

  ParameterLayout layout;
  std::vector<std::byte> bytes;
};

using Param = std::tuple<Precision, ParameterSpec>;

class CudaParameterLayout : public ::testing::TestWithParam<Param> {
 protected:
  const Precision precision_ = std::get<0>(GetParam());
  const ParameterSpec spec_ = std::get<1>(GetParam());
  const std::vector<float> values_ = some_values(element_count(spec_));
  const Imported block_{precision_, spec_, values_};
};

TEST_P(CudaParameterLayout, ReturnsWhatItWasGiven) {
  std::vector<float> returned(values_.size());
  export_block(precision_, spec_, block_.bytes, returned);
  EXPECT_EQ(returned, values_);
}

TEST_P(CudaParameterLayout, HasEachParameterOnceAndZerosBeside) {
  std::multiset<float> stored;
  for (const float value : block_.floats()) {
    if (value != 0) stored.insert(value);
  }
  EXPECT_EQ(stored, std::multiset<float>(values_.begin(), values_.end()));
}

TEST_P(CudaParameterLayout, KeepsARoundedCopyOfBothPartsOfWeightsOnly) {
  const bool has_weights = std::holds_alternative<ConvolutionParameters>(spec_) ||
                           std::holds_alternative<TransposedConvolutionParameters>(spec_) ||
                           std::holds_alternative<LinearParameters>(spec_);
  ASSERT_EQ(block_.layout.has_bf16_copy(), has_weights && precision_ == Precision::kBf16);
  if (!block_.layout.has_bf16_copy()) {
    EXPECT_EQ(block_.layout.bytes(), um::Bytes{4 * block_.layout.float_count()});
    EXPECT_THROW((void)block_.layout.bf16_weights(), um::ContractError);
    return;
  }
  for (std::size_t i = 0; i < block_.layout.weight_count(); ++i) {
    ASSERT_EQ(block_.copy_at(block_.layout.bf16_weights(), i),
              Bfloat16(block_.float_at(block_.layout.weights(), i)));
  }
  for (std::size_t i = 0; i < block_.layout.bias_count(); ++i) {
    ASSERT_EQ(block_.copy_at(block_.layout.bf16_bias(), i),
              Bfloat16(block_.float_at(block_.layout.bias(), i)));
  }
}

TEST_P(CudaParameterLayout, BeginsEveryPartWhereVectorLoadsMay) {
  EXPECT_EQ(block_.layout.bias().count() % 32, 0U);
  EXPECT_EQ(block_.layout.float_count() % 8, 0U);
  if (!block_.layout.has_bf16_copy()) return;
  EXPECT_EQ(block_.layout.bf16_weights().count() % 256, 0U);
  EXPECT_EQ(block_.layout.bf16_bias().count() % 16, 0U);
  const auto* const grouped = std::get_if<ConvolutionParameters>(&spec_);
  if (grouped != nullptr && grouped->groups > 1) return;
  EXPECT_EQ(block_.layout.bias().count() % 256, 0U);
  EXPECT_EQ(block_.layout.bf16_bias().count() % 128, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, CudaParameterLayout,
    ::testing::Combine(
        ::testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16),
        ::testing::Values(ParameterSpec{ConvolutionParameters{20, 3, {3, 2}, true}},
                          ParameterSpec{ConvolutionParameters{33, 10, nets::square(1), false}},
                          ParameterSpec{ConvolutionParameters{8, 16, nets::square(3), true}},
                          ParameterSpec{ConvolutionParameters{24, 12, {3, 2}, true, 12}},
                          ParameterSpec{TransposedConvolutionParameters{20, 9, {4, 3}, true}},
                          ParameterSpec{LinearParameters{10, {6, 3, 2}, true}},
                          ParameterSpec{LinearParameters{2, {1, 5, 5}, false}},
                          ParameterSpec{BatchNormParameters{20}},
                          ParameterSpec{BatchNormStatistics{3}})));

// (out, in, 3, 2) of (9, 10): 10 input channels are padded to 16.
TEST(CudaConvolutionWeights, AreKrsc) {
  const ConvolutionParameters spec{.out = 9, .in = 10, .kernel = {3, 2}, .bias = true};
  const std::vector<float> values = some_values(element_count(spec));
  const Imported block{Precision::kFp32, spec, values};
  EXPECT_EQ(block.layout.weight_count(), 16U * 3 * 2 * 16);
  EXPECT_EQ(block.layout.bias_count(), 16U);
  const std::size_t k = 8;
  const std::size_t c = 9;
  const std::size_t r = 2;
  const std::size_t s = 1;
  EXPECT_EQ(block.float_at(block.layout.weights(), ((k * 3 + r) * 2 + s) * 16 + c),
            values[((k * 10 + c) * 3 + r) * 2 + s]);
  EXPECT_EQ(block.float_at(block.layout.bias(), 8), values.back());
}

// (out, in / 4, 1, 3) of (8, 16): a group's channels are not padded.
TEST(CudaConvolutionWeights, OfGroupsAreThoseOfTheirGroupAlone) {
  const ConvolutionParameters spec{.out = 8, .in = 16, .kernel = {1, 3}, .bias = true, .groups = 4};
  const std::vector<float> values = some_values(element_count(spec));
  const Imported block{Precision::kFp32, spec, values};
  EXPECT_EQ(block.layout.weight_count(), 8U * 3 * 4);
  EXPECT_EQ(block.float_at(block.layout.weights(), (7 * 3 + 1) * 4 + 3),
            values[(7 * 4 + 3) * 3 + 1]);
}

// An image (6, 3, 2) is stored as (3, 2, 8 with padding), as are the columns of the weights.
TEST(CudaLinearWeights, HaveTheirColumnsInTheOrderOfAnImage) {
  const LinearParameters spec{.out = 5, .in = {6, 3, 2}, .bias = false};
  const std::vector<float> values = some_values(element_count(spec));
  const Imported block{Precision::kFp32, spec, values};
  EXPECT_EQ(block.layout.weight_count(), 8U * 3 * 2 * 8);
  EXPECT_EQ(block.layout.bias_count(), 0U);
  EXPECT_EQ(block.float_at(block.layout.weights(), 4 * 48 + (2 * 2 + 1) * 8 + 5),
            values[4 * 36 + (5 * 3 + 2) * 2 + 1]);
}

// Several threads copy so large a batch.
TEST(StagedBatch, HasAllNumbersOfALargeBatch) {
  const LoadBatch load{.x = {14, {3, 256, 255}}};
  Batch batch = empty_batch(*std::pmr::new_delete_resource());
  for (std::size_t i = 0; i < load.x.elements(); ++i) {
    batch.images.push_back(static_cast<float>(i % 251) + 0.37F);
  }
  batch.labels.assign(load.x.batch, 7);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const StagedBatch staged{precision, load};
    std::vector<std::byte> bytes(staged.bytes().count());
    staged.fill(load, batch, bytes);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < load.x.elements(); ++i) {
      const float wanted = batch.images[i];
      const std::byte* const images = bytes.data() + staged.images(0).count();
      if (precision == Precision::kFp32) {
        float is = 0;
        std::memcpy(&is, images + i * sizeof is, sizeof is);
        wrong += is == wanted ? 0 : 1;
      } else {
        Bfloat16 is;
        std::memcpy(&is, images + i * sizeof is, sizeof is);
        wrong += is.bits() == Bfloat16{wanted}.bits() ? 0 : 1;
      }
    }
    EXPECT_EQ(wrong, 0U);
  }
}

}  // namespace
}  // namespace spillway::cuda

namespace spillway::cuda {

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const ChannelMatrix& matrix, std::ostream* out) {
  *out << matrix.rows << 'x' << matrix.channels;
}

namespace {

TEST(ChannelMatrix, HasARowForEachPixelAndPaddedChannels) {
  const ChannelMatrix matrix = matrix_of({.batch = 2, .image = {20, 3, 5}});
  EXPECT_EQ(matrix.rows, 30);
  EXPECT_EQ(matrix.channels, 24);
  EXPECT_EQ(matrix.groups(), 3);
}

class Tiling : public testing::TestWithParam<ChannelMatrix> {};

// Counts, per group and row, the threads that tile_place() assigns.
TEST_P(Tiling, GivesEveryGroupOfEveryRowToOneThread) {
  const ChannelMatrix matrix = GetParam();
  const ChannelTiling t = tiling_of(matrix);
  ASSERT_LE(t.across * t.down, kTileThreads);
  std::size_t groups = 0;
  for (std::size_t g = 0; g < std::size_t{t.columns} * t.across; ++g) groups += g < matrix.groups();
  EXPECT_EQ(groups, matrix.groups());
  EXPECT_LT((t.columns - 1) * t.across, matrix.groups()) << "no block without a group";
  std::vector<int> threads_of_row(matrix.rows);
  for (std::size_t chunk = 0; chunk < t.chunks; ++chunk) {
    const std::size_t begin = chunk * t.rows_per_chunk;
    ASSERT_LT(begin, matrix.rows) << "no chunk without a row";
    const std::size_t end = std::min(begin + t.rows_per_chunk, matrix.rows);
    for (std::size_t down = 0; down < t.down; ++down) {
      for (std::size_t row = begin + down; row < end; row += t.down) ++threads_of_row[row];
    }
  }
  for (const int threads : threads_of_row) ASSERT_EQ(threads, 1);
}

TEST_P(Tiling, MakesNoMoreBlocksThanFillADevice) {
  const ChannelTiling t = tiling_of(GetParam());
  EXPECT_LE(t.columns * t.chunks, 1024);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Tiling,
                         testing::Values(ChannelMatrix{1, 8}, ChannelMatrix{7, 8},
                                         ChannelMatrix{1000, 24}, ChannelMatrix{12345, 96},
                                         ChannelMatrix{12544, 2048}, ChannelMatrix{802817, 64},
                                         ChannelMatrix{64, 4096}, ChannelMatrix{3, 264}));

}  // namespace

}  // namespace spillway::cuda
