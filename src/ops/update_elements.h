#pragma once

#include <cmath>
#include <cstddef>

#include "src/ops/backend.h"
#include "src/ops/training_operations.h"

namespace spillway {

/// The coefficients of Adam's kernels in one step. They are computed in doubles and rounded once,
/// so that all backends use the same. An update is then, with each operation rounded:
///
///     g = dw + decay w                          (decay 0 without weight decay)
///     m = m + new_first (g - m)
///     v = old_second v + (new_second g) g
///     w = shrink w - step_size (m / (sqrt(v) / root + epsilon))    (shrink 1 without decay)
struct AdamRates {
  float decay;
  float shrink;
  float new_first;
  float old_second;
  float new_second;
  float step_size;
  float root;
  float epsilon;
};

[[nodiscard]] AdamRates adam_rates(const AdamOptions& options, const StepContext& context);

/// The coefficients of RMSprop's kernels in one step, computed in doubles and rounded once.
struct RmspropRates {
  float decay;
  float old_square;  ///< alpha
  float new_square;  ///< 1 - alpha
  float epsilon;
  float momentum;
  float rate;
};

[[nodiscard]] RmspropRates rmsprop_rates(const RmspropOptions& options, const StepContext& context);

/// Applies SgdUpdate to float `i` of a part of the parameters.
struct SgdElement {
  SgdOptions options;
  float rate;
  std::size_t decayed;  // number of floats at the front that decay
  const float* old_w;
  const float* old_v;
  const float* dw;
  float* w;
  float* v;

  void operator()(std::size_t i) const {
    const float gradient = dw[i] + (i < decayed ? options.weight_decay : 0.F) * old_w[i];
    const float velocity = options.momentum * old_v[i] + gradient;
    v[i] = velocity;
    w[i] = old_w[i] - rate * (options.nesterov ? gradient + options.momentum * velocity : velocity);
  }
};

/// Applies AdamUpdate to float `i` of a part of the parameters.
struct AdamElement {
  AdamRates rates;
  std::size_t decayed;  // number of floats at the front that decay
  const float* old_w;
  const float* old_m;
  const float* old_v;
  const float* dw;
  float* w;
  float* m;
  float* v;

  void operator()(std::size_t i) const {
    const float gradient = dw[i] + (i < decayed ? rates.decay : 0.F) * old_w[i];
    const float first = old_m[i] + rates.new_first * (gradient - old_m[i]);
    const float second = rates.old_second * old_v[i] + rates.new_second * gradient * gradient;
    const float size = std::sqrt(second) / rates.root + rates.epsilon;
    m[i] = first;
    v[i] = second;
    w[i] = (i < decayed ? rates.shrink : 1.F) * old_w[i] - rates.step_size * (first / size);
  }
};

/// Applies RmspropUpdate to float `i` of a part of the parameters, with each operation rounded.
/// Without a velocity, `old_v` and `v` are null.
struct RmspropElement {
  RmspropRates rates;
  std::size_t decayed;  // number of floats at the front that decay
  const float* old_w;
  const float* old_s;
  const float* old_v;
  const float* dw;
  float* w;
  float* s;
  float* v;

  void operator()(std::size_t i) const {
    const float gradient = dw[i] + (i < decayed ? rates.decay : 0.F) * old_w[i];
    const float square = rates.old_square * old_s[i] + rates.new_square * gradient * gradient;
    float change = gradient / (std::sqrt(square) + rates.epsilon);
    s[i] = square;
    if (v != nullptr) {
      change = rates.momentum * old_v[i] + change;
      v[i] = change;
    }
    w[i] = old_w[i] - rates.rate * change;
  }
};

}  // namespace spillway
