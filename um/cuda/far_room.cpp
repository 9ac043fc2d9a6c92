#include "um/cuda/far_room.h"

#include "um/host/available_memory.h"

namespace spillway::um {
namespace {

// RAM that far memory leaves to everything else.
constexpr Bytes kRamMargin = 1_GiB;

}  // namespace

void expect_far_room(Bytes size, const std::string& deed) {
  expect_available(size + kRamMargin, deed, kFarAdvice);
}

}  // namespace spillway::um
