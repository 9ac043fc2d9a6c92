#pragma once

#include <span>

#include "src/ranks/communicator.h"

namespace spillway::testing {

/// A property of every communicator, whatever its transport. All ranks call it; it throws
/// std::runtime_error on each rank where it does not hold.
struct Promise {
  const char* name;
  void (*check)(Communicator&);
};

[[nodiscard]] std::span<const Promise> communicator_contract();

}  // namespace spillway::testing
