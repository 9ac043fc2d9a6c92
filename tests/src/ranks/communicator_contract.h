#pragma once

#include <span>

#include "src/ranks/communicator.h"

namespace spillway::testing {

/// Something that every communicator must do, whatever carries its messages. All ranks call it; it
/// throws std::runtime_error on a rank where it does not hold.
struct Promise {
  const char* name;
  void (*check)(Communicator&);
};

[[nodiscard]] std::span<const Promise> communicator_contract();

}  // namespace spillway::testing
