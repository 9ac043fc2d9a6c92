#include "um/host/far/far_access.h"

#include <cstdint>

#include "um/error.h"

namespace spillway::um {

void expect_far_access(Bytes store_size, Bytes offset, std::span<const std::byte> near,
                       Caller where) {
  const auto address = reinterpret_cast<std::uintptr_t>(near.data());
  expects((address | offset.count() | near.size()) % 4096 == 0,
          "address, offset and size of a far access are multiples of 4096", where);
  expects(offset <= store_size && Bytes{near.size()} <= store_size - offset,
          "a far access ends within the far store", where);
}

}  // namespace spillway::um
