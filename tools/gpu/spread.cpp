#include "tools/gpu/spread.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::gpu {

Spread spread_of(std::vector<double> values) {
  um::expects(!values.empty(), "a spread of at least one value");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.median = median, .min = values.front(), .max = values.back(), .count = values.size()};
}

nlohmann::json to_json(const Spread& spread) {
  return {{"median", spread.median},
          {"least", spread.min},
          {"most", spread.max},
          {"count", spread.count}};
}

}  // namespace spillway::gpu
