#include "prefetch/bounds/bounds_json.h"

#include "um/bytes.h"

namespace spillway::prefetch {

nlohmann::json to_json(const Bounds& bounds) {
  return {{"beaumont", um::seconds(bounds.beaumont)},
          {"offload", um::seconds(bounds.offload)},
          {"mixed", um::seconds(bounds.mixed)},
          {"offload_turnover", um::seconds(bounds.offload_transition)},
          {"mixed_turnover", um::seconds(bounds.mixed_transition)}};
}

}  // namespace spillway::prefetch
