#pragma once

#include "src/ops/backend.h"
#include "src/ops/optimizer.h"

namespace spillway {

/// The numbers that Adam's kernels reckon with in one step, made in doubles and rounded once, so
/// that all backends have the same. With them an update is, each operation rounded:
///
///     g = dw + decay w                          (decay 0 where there is none)
///     m = m + new_first (g - m)
///     v = old_second v + (new_second g) g
///     w = shrink w - step_size (m / (sqrt(v) / root + epsilon))    (shrink 1 where no decay is)
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

}  // namespace spillway
