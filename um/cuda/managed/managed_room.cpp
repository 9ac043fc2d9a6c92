#include "um/cuda/managed/managed_room.h"

#include <string>

#include "um/error.h"

namespace spillway::um {

void expect_managed_room(Bytes size, const ManagedRoom& room) {
  const Bytes all = room.taken + size;
  if (room.limit && all > *room.limit) {
    throw Error{to_string(all) + " of unified memory are more than the limit of " +
                to_string(*room.limit) + " set for this run; use a smaller network or batch"};
  }
  if (room.oversubscribe || all + kManagedMargin <= room.free) return;
  throw Error{"unified memory of " + to_string(all) + " does not fit in the " +
              to_string(room.free) + " that the GPU has free, less a margin of " +
              to_string(kManagedMargin) +
              "; use --memory copy, a smaller batch, or --oversubscribe at the risk of a GPU that "
              "hangs"};
}

}  // namespace spillway::um
