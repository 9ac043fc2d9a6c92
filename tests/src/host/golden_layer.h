#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include "tests/golden/layer_golden.h"
#include "tests/src/host/tested_kernels.h"

namespace spillway::host {

/// What checks of a layer's kernels against PyTorch's numbers share.
class GoldenLayerRunner : public host_tested::KernelRunner,
                          public testing::WithParamInterface<test::LayerGolden> {
 protected:
  [[nodiscard]] Block input(std::size_t number) const {
    const TensorShape& shape = g_.x[number];
    return tensor(shape, g_.drawn("x" + std::to_string(number + 1), shape.elements()));
  }
  [[nodiscard]] Block output_gradient() const {
    return tensor(g_.y, g_.drawn("dy", g_.y.elements()));
  }
  // What a ReLU that made y lets through.
  [[nodiscard]] Block masked_output_gradient(Block& y) const {
    Block dy = output_gradient();
    Block dx = tensor(g_.y);
    run(ReluBackward{.x = g_.y}, {&y, &dy, &dx});
    return dx;
  }
  void expect_golden(const std::string& part, const Values& numbers,
                     const std::string& algorithm = "default") {
    const Values& wanted = g_.results.at(part);
    ASSERT_EQ(numbers.size(), wanted.size()) << part;
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      difference += std::pow(numbers[i] - wanted[i], 2);
      norm += std::pow(wanted[i], 2);
    }
    const double error = std::sqrt(difference / norm);
    EXPECT_LE(error, tolerance_of(algorithm)) << part << ", " << algorithm;
    RecordProperty(part + "_" + algorithm, std::to_string(error * 1e9) + "e-9");
  }

  const test::LayerGolden& g_ = GetParam();

 private:
  // How far the numbers of a result may be from PyTorch's in 64 bits: the norm of the difference,
  // in norms of the result. (On one machine: 3e-7 at worst, and PyTorch in 32 bits likewise.)
  static constexpr double kTolerance = 1e-5;
  // In the longest sums here, of 144 products, each rounding of 2^-24 in 32 bits adds up to about
  // sqrt(144) * 2^-24 = 7e-7. The transforms of a Winograd convolution F(4,3) lose about twenty
  // times as much as direct sums (Lavin and Gray, "Fast algorithms for convolutional neural
  // networks", 2016). (On one machine: 4e-7.)
  static constexpr double kWinogradTolerance = 1.4e-5;
  // Each number of a bfloat16 tensor errs by up to 2^-9 of itself, about half of that in the root
  // mean square: inputs, what lies between, and the result, which add up to 2^-8 and more where
  // slopes are differences. (On one machine: 3.9e-3.)
  static constexpr double kBf16Tolerance = 5e-3;

  static double tolerance_of(const std::string& algorithm) {
    if (test::is_bf16()) return kBf16Tolerance;
    return algorithm == "winograd" ? kWinogradTolerance : kTolerance;
  }
};

}  // namespace spillway::host
