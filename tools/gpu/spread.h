#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace spillway::gpu {

/// What repeated measurements of one figure gave.
struct Spread {
  double median;  ///< of an even number, the mean of the middle two
  double min;
  double max;
  std::size_t count;
};

/// Requires: `values` is not empty.
[[nodiscard]] Spread spread_of(std::vector<double> values);

/// {"median", "least", "most", "count"}
[[nodiscard]] nlohmann::json to_json(const Spread& spread);

}  // namespace spillway::gpu
