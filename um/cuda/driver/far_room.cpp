#include "um/cuda/driver/far_room.h"

#include "um/machine/available_memory.h"

namespace spillway::um {
namespace {

// RAM that far memory leaves to everything else.
constexpr Bytes kRamMargin = 1_GiB;

}  // namespace

void expect_far_room(Bytes size, const std::string& deed) {
  expect_available(size + kRamMargin, deed, kFarAdvice);
}

}  // namespace spillway::um
