#pragma once

#include <cstddef>

#include "tests/src/host/kernel_runner.h"

namespace spillway::host {

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Returns the gradient of loss(x) by central differences in double, with steps of 1e-5. The error
/// of the method (1e-10 times the third derivative) and of rounding (1e-16 / 1e-5 times the loss)
/// are both far below float precision.
template <class Loss>
Values numeric_gradient(Values x, const Loss& loss) {
  constexpr double kStep = 1e-5;
  Values gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + kStep;
    const double above = loss(x);
    x[i] = middle - kStep;
    gradient[i] = (above - loss(x)) / (2 * kStep);
    x[i] = middle;
  }
  return gradient;
}

}  // namespace spillway::host
