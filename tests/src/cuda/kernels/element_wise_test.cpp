#include <algorithm>
#include <limits>
#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

// All results are exact: one float operation, or none, rounded once.
class CudaElementWise : public DeviceRunner,
                        public ::testing::WithParamInterface<std::tuple<Precision, TensorShape>> {
 protected:
  CudaElementWise() : DeviceRunner{std::get<0>(GetParam())} {}

  Operand input(unsigned seed) { return tensor(shape_, random(shape_.elements(), seed)); }
  // As a ReLU leaves it: half of it zero.
  Operand output(unsigned seed) {
    Values y = random(shape_.elements(), seed);
    for (double& value : y) value = std::max(value, 0.0);
    return tensor(shape_, y);
  }
  // The operation writes the host's numbers into a new block and the same bits over operand `over`.
  template <class Op>
  void expect_the_hosts(const Op& op, std::vector<Operand*> operands, std::size_t over) {
    Operand fresh = tensor(shape_);
    operands.push_back(&fresh);
    run(op, operands);
    expect_equal(shape_, fresh);
    operands.back() = operands[over];
    run_on_device(op, operands);
    EXPECT_EQ(operands[over]->device.bytes(), fresh.device.bytes());
  }

  const TensorShape shape_ = std::get<1>(GetParam());
};

TEST_P(CudaElementWise, ReluForwardIsTheHosts) {
  Operand x = input(1);
  expect_the_hosts(ReluForward{.x = shape_}, {&x}, 0);
}

TEST_P(CudaElementWise, ReluBackwardIsTheHosts) {
  Operand y = output(1);
  Operand dy = input(2);
  expect_the_hosts(ReluBackward{.x = shape_}, {&y, &dy}, 1);
}

TEST_P(CudaElementWise, AddForwardIsTheHosts) {
  for (const bool relu : {false, true}) {
    Operand a = input(1);
    Operand b = input(2);
    expect_the_hosts(AddForward{.x = shape_, .relu = relu}, {&a, &b}, 0);
  }
}

TEST_P(CudaElementWise, AddGradientsIsTheHosts) {
  Operand a = input(1);
  Operand b = input(2);
  Operand y = output(3);
  expect_the_hosts(AddGradients{.x = shape_}, {&a, &b}, 0);
  Operand again = input(1);
  expect_the_hosts(AddGradients{.x = shape_, .relu = true}, {&again, &b, &y}, 0);
}

TEST_P(CudaElementWise, ReluLetsNansThrough) {
  Values x(shape_.elements(), -1.0);
  x.back() = std::numeric_limits<double>::quiet_NaN();
  Operand operand = tensor(shape_, x);
  run_on_device(ReluForward{.x = shape_}, {&operand, &operand});
  const Values y = values(shape_, operand);
  EXPECT_TRUE(std::isnan(y.back()));
  EXPECT_EQ(y.front(), 0);
}

// The last has more packs than threads of a block, and its last block has threads without one.
INSTANTIATE_TEST_SUITE_P(Shapes, CudaElementWise,
                         ::testing::Combine(kPrecisions,
                                            ::testing::Values(TensorShape{1, {3, 5, 3}},
                                                              TensorShape{3, {16, 3, 3}},
                                                              TensorShape{2, {33, 1, 1}},
                                                              TensorShape{5, {24, 13, 11}})));

}  // namespace
}  // namespace spillway::cuda
