#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

struct Window {
  TensorShape x;
  nets::Extent size;
  nets::Extent offset;
};

// All results are exact.
class CudaCrop : public DeviceRunner,
                 public ::testing::WithParamInterface<std::tuple<Precision, Window>> {
 protected:
  CudaCrop() : DeviceRunner{std::get<0>(GetParam())} {}

  const Window window_ = std::get<1>(GetParam());
  const TensorShape x_ = window_.x;
  const TensorShape y_{x_.batch, {x_.image.channels, window_.size.height, window_.size.width}};
};

TEST_P(CudaCrop, ForwardIsTheHosts) {
  Operand x = tensor(x_, random(x_.elements(), 1));
  Operand y = tensor(y_);
  run(CropForward{.x = x_, .y = y_, .offset = window_.offset}, {&x, &y});
  expect_equal(y_, y);
}

TEST_P(CudaCrop, BackwardIsTheHosts) {
  Operand dy = tensor(y_, random(y_.elements(), 2));
  Operand dx = tensor(x_);
  run(CropBackward{.x = x_, .y = y_, .offset = window_.offset}, {&dy, &dx});
  expect_equal(x_, dx);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, CudaCrop,
    ::testing::Combine(kPrecisions, ::testing::Values(Window{{3, {21, 7, 9}}, {4, 5}, {2, 3}},
                                                      Window{{2, {3, 6, 5}}, {6, 1}, {0, 4}},
                                                      Window{{2, {16, 4, 3}}, {4, 3}, {0, 0}})));

}  // namespace
}  // namespace spillway::cuda
