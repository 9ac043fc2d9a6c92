#include <ostream>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

struct Case {
  std::size_t batch;
  std::vector<std::size_t> channels;  // per part
  nets::Extent image;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << " of " << c.image.height << "x" << c.image.width << " with";
  for (const std::size_t channels : c.channels) *out << " " << channels;
}

// All results are exact: copies, or a single addition.
class Concat : public KernelRunner, public ::testing::WithParamInterface<Case> {
 protected:
  Concat() {
    for (const std::size_t channels : GetParam().channels) {
      const auto& [height, width] = GetParam().image;
      op_.parts.push_back({.batch = GetParam().batch, .image = {channels, height, width}});
      first_channels_.push_back(first_channels_.empty()
                                    ? 0
                                    : first_channels_.back() + parts().rbegin()[1].image.channels);
    }
  }
  [[nodiscard]] const std::vector<TensorShape>& parts() const { return op_.parts; }
  [[nodiscard]] TensorShape whole() const { return op_.whole(); }

  // Calls visit(offset in part i, offset in the whole) for each element of the part.
  template <class Visit>
  void for_each(std::size_t i, const Visit& visit) const {
    const auto& [batch, image] = parts()[i];
    for (std::size_t n = 0; n < batch; ++n) {
      for (std::size_t c = 0; c < image.channels; ++c) {
        for (std::size_t h = 0; h < image.height; ++h) {
          for (std::size_t w = 0; w < image.width; ++w) {
            visit(place(parts()[i], n, c, h, w), place(whole(), n, first_channels_[i] + c, h, w));
          }
        }
      }
    }
  }
  // Returns the channels of `whole` that belong to part i.
  [[nodiscard]] Values slice(std::size_t i, const Values& whole) const {
    Values part(parts()[i].elements());
    for_each(i, [&](std::size_t to, std::size_t from) { part[to] = whole[from]; });
    return part;
  }
  [[nodiscard]] ConcatBackward::Slice slice_of(std::size_t i, bool accumulates) const {
    return {.x = parts()[i], .first_channel = first_channels_[i], .accumulates = accumulates};
  }

  ConcatForward op_;
  std::vector<std::size_t> first_channels_;
};

TEST_P(Concat, PutsTheChannelsOfThePartsOneAfterTheOther) {
  std::vector<Block> blocks;
  Values expected(whole().elements());
  for (std::size_t i = 0; i < parts().size(); ++i) {
    const Values x = random_values(parts()[i].elements(), static_cast<unsigned>(i));
    for_each(i, [&](std::size_t from, std::size_t to) { expected[to] = x[from]; });
    blocks.push_back(tensor(parts()[i], x));
  }
  Block y = tensor(whole());
  std::vector<Block*> operands;
  for (Block& block : blocks) operands.push_back(&block);
  operands.push_back(&y);
  run(op_, operands);
  expect_near(values(whole(), y), expected, 0);
}

TEST_P(Concat, GivesEachPartItsChannelsOfTheGradient) {
  const Values dy = random_values(whole().elements(), 7);
  Block dy_block = tensor(whole(), dy);
  ConcatBackward backward{.y = whole(), .slices = {}};
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < parts().size(); ++i) {
    backward.slices.push_back(slice_of(i, /*accumulates=*/false));
    blocks.push_back(tensor(parts()[i]));
  }
  std::vector<Block*> operands{&dy_block};
  for (Block& block : blocks) operands.push_back(&block);
  run(backward, operands);
  for (std::size_t i = 0; i < parts().size(); ++i) {
    EXPECT_EQ(values(parts()[i], blocks[i]), slice(i, dy)) << "part " << i;
  }
}

// The first part needs no gradient; the last one already has one.
TEST_P(Concat, AddsToWhatAPartHasAndLeavesOutWhoNeedsNone) {
  const std::size_t last = parts().size() - 1;
  const Values dy = random_values(whole().elements(), 7);
  const Values sum = random_values(parts()[last].elements(), 8);
  Values expected = slice(last, dy);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    expected[i] = static_cast<double>(static_cast<float>(expected[i]) + static_cast<float>(sum[i]));
  }
  ConcatBackward backward{.y = whole(), .slices = {}};
  std::vector<Block> blocks;
  for (std::size_t i = 1; i < last; ++i) {
    backward.slices.push_back(slice_of(i, /*accumulates=*/false));
    blocks.push_back(tensor(parts()[i]));
  }
  backward.slices.push_back(slice_of(last, /*accumulates=*/true));
  blocks.push_back(tensor(parts()[last], sum));
  Block dy_block = tensor(whole(), dy);
  std::vector<Block*> operands{&dy_block, &blocks.back()};  // dy, the sum, then the outputs
  for (Block& block : blocks) operands.push_back(&block);
  run(backward, operands);
  expect_near(values(parts()[last], blocks.back()), expected, 0);
  for (std::size_t i = 1; i < last; ++i) {
    EXPECT_EQ(values(parts()[i], blocks[i - 1]), slice(i, dy)) << "part " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Concat,
    ::testing::Values(Case{2, {16, 32}, {3, 5}},         // whole blocks of channels
                      Case{3, {10, 6, 33, 5}, {4, 3}},   // parts that begin and end within blocks
                      Case{1, {8, 24, 8}, {1, 1}},       // vectors of half blocks with AVX-512
                      Case{2, {3, 20}, {2, 7}},          // an image as the first part
                      Case{2, {1, 2}, {5, 4}},           // result is an image
                      Case{3, {8, 24, 13}, {4, 3}},      // padding at the end
                      Case{2, {12, 8, 3}, {3, 3}},       // half a pack
                      Case{2, {5, 16, 3}, {7, 3}},       // 24 channels without padding
                      Case{2, {2, 3, 1, 17}, {15, 14}},  // more elements than threads
                      Case{2, {2, 3, 1, 17}, {5, 4}}));  // many different layouts

}  // namespace
}  // namespace spillway::test
