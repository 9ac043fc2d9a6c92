#pragma once

#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

/// Stores the message of the current exception as this thread's last failure, and returns its
/// status. Requires: called in a handler.
[[nodiscard]] spillway_um_status note_failure() noexcept;

/// Returns the last failure of the calling thread.
[[nodiscard]] const char* last_failure() noexcept;

/// Runs the body of a C function and turns exceptions into a status.
template <class Action>
[[nodiscard]] spillway_um_status guarded(const Action& action) noexcept {
  try {
    action();
    return SPILLWAY_UM_OK;
  } catch (...) {
    return note_failure();
  }
}

}  // namespace spillway::dropin
