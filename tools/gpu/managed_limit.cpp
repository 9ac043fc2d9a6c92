#include "tools/gpu/managed_limit.h"

#include "um/cuda/managed/managed_room.h"
#include "um/error.h"

namespace spillway::gpu {

using um::Bytes;

void expect_within_limit(Bytes need, Bytes free) {
  const Bytes limit = um::shared_gpu_limit(free);
  if (need <= limit) return;
  throw um::Error{"measuring takes " + um::to_string(need) + " of unified memory, and with " +
                  um::to_string(free) + " of the GPU free it may take at most " +
                  um::to_string(limit) + "; end what else uses the GPU"};
}

}  // namespace spillway::gpu
