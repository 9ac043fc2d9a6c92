#include "tools/gpu/managed_limit.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::gpu {

using um::Bytes;

Bytes managed_limit(Bytes free) {
  constexpr Bytes kMost{16ULL << 30U};
  return std::min(kMost, Bytes{free.count() / 4});
}

void expect_within_limit(Bytes need, Bytes free) {
  if (need <= managed_limit(free)) return;
  throw um::Error{"measuring takes " + um::to_string(need) + " of unified memory, and with " +
                  um::to_string(free) + " of the GPU free it may take at most " +
                  um::to_string(managed_limit(free)) + "; end what else uses the GPU"};
}

}  // namespace spillway::gpu
