#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

struct Parts {
  std::size_t batch;
  std::vector<std::size_t> channels;
  nets::Extent image;
};

// All results are exact: copies, or one addition, rounded once.
class CudaConcat : public DeviceRunner,
                   public ::testing::WithParamInterface<std::tuple<Precision, Parts>> {
 protected:
  CudaConcat() : DeviceRunner{std::get<0>(GetParam())} {
    const auto& [batch, channels, image] = std::get<1>(GetParam());
    std::size_t first = 0;
    for (const std::size_t count : channels) {
      op_.parts.push_back({.batch = batch, .image = {count, image.height, image.width}});
      first_channels_.push_back(first);
      first += count;
    }
  }

  ConcatForward op_;
  std::vector<std::size_t> first_channels_;
};

TEST_P(CudaConcat, ForwardIsTheHosts) {
  std::vector<Operand> parts;
  for (const TensorShape& part : op_.parts) {
    parts.push_back(tensor(part, random(part.elements(), static_cast<unsigned>(parts.size()))));
  }
  Operand y = tensor(op_.whole());
  std::vector<Operand*> operands;
  for (Operand& part : parts) operands.push_back(&part);
  operands.push_back(&y);
  run(op_, operands);
  expect_equal(op_.whole(), y);
}

TEST_P(CudaConcat, BackwardIsTheHosts) {
  Operand dy = tensor(op_.whole(), random(op_.whole().elements(), 7));
  ConcatBackward backward{.y = op_.whole(), .slices = {}};
  std::vector<Operand> parts;
  for (std::size_t i = 0; i < op_.parts.size(); ++i) {
    backward.slices.push_back(
        {.x = op_.parts[i], .first_channel = first_channels_[i], .accumulates = false});
    parts.push_back(tensor(op_.parts[i]));
  }
  std::vector<Operand*> operands{&dy};
  for (Operand& part : parts) operands.push_back(&part);
  run(backward, operands);
  for (std::size_t i = 0; i < parts.size(); ++i) expect_equal(op_.parts[i], parts[i]);
}

// The first part needs no gradient, the last has one already.
TEST_P(CudaConcat, BackwardAddsToWhatAPartHasAsTheHostDoes) {
  const std::size_t last = op_.parts.size() - 1;
  Operand dy = tensor(op_.whole(), random(op_.whole().elements(), 7));
  ConcatBackward backward{.y = op_.whole(), .slices = {}};
  std::vector<Operand> parts;
  for (std::size_t i = 1; i <= last; ++i) {
    const TensorShape& shape = op_.parts[i];
    backward.slices.push_back(
        {.x = shape, .first_channel = first_channels_[i], .accumulates = i == last});
    parts.push_back(i == last ? tensor(shape, random(shape.elements(), 8)) : tensor(shape));
  }
  std::vector<Operand*> operands{&dy, &parts.back()};  // dy, the sum, then what is written
  for (Operand& part : parts) operands.push_back(&part);
  run(backward, operands);
  for (std::size_t i = 1; i <= last; ++i) expect_equal(op_.parts[i], parts[i - 1]);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaConcat,
    ::testing::Combine(kPrecisions,
                       ::testing::Values(Parts{2, {16, 32}, {3, 5}},        // packs all along
                                         Parts{3, {8, 24, 13}, {4, 3}},     // padding at the end
                                         Parts{3, {10, 6, 33, 5}, {4, 3}},  // within packs
                                         Parts{1, {8, 24, 8}, {1, 1}},      // vectors
                                         Parts{2, {1, 2}, {5, 4}},
                                         Parts{2, {12, 8, 3}, {3, 3}},  // half a pack
                                         Parts{2, {5, 16, 3}, {7, 3}},  // 24, no padding
                                         Parts{2, {2, 3, 1, 17}, {15, 14}})));

}  // namespace
}  // namespace spillway::cuda
